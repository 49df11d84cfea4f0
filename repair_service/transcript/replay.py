"""Rebuilding a delta channel's list from the value before it and the writes behind that."""

from collections.abc import Iterable, Sequence

from repair_service.transcript.message import Message
from repair_service.transcript.objects import as_object
from repair_service.transcript.read import OVERWRITE, REMOVE_ALL


def replay(seed: Sequence[Message], writes: Iterable[Sequence[Message]]) -> tuple[Message, ...]:
    """Merge writes into a list as LangGraph does when it reads a delta channel.

    By message id: a known id replaces its message where it stands, a new one is appended, a removal
    takes its message out, and the removal of all empties the list. A message without an id is
    appended. A write that replaces the list is taken as it stands. Every message keeps its bytes,
    but for dicts: the reader makes objects of them, so here they become the same objects.

    Sources: langgraph/pregel/_messages.py (`_messages_delta_reducer`),
    langgraph/channels/delta.py (`replay_writes`), deepagents/_messages_reducer.py.

    Args:
        seed: The nearest ancestor's value.
        writes: What was written behind it, oldest first, as `read_messages` reads it.

    Raises:
        Unreadable: A dict among the messages has fields that are not known, so what the reader
            would make of it is not known either.
    """
    merged, places = _start(seed)
    for write in writes:
        if write and write[0].kind == OVERWRITE:
            merged, places = _start(write[1:])
            continue
        for message in write:
            identifier = message.id
            if message.kind == "remove":
                if identifier == REMOVE_ALL:
                    merged, places = _start(())
                elif identifier is not None and identifier in places:
                    merged[places.pop(identifier)] = None
            elif identifier is not None and identifier in places:
                merged[places[identifier]] = as_object(message)
            else:
                if identifier is not None:
                    places[identifier] = len(merged)
                merged.append(as_object(message))
    return tuple(message for message in merged if message is not None)


def _start(value: Sequence[Message]) -> tuple[list[Message | None], dict[str, int]]:
    """A list to merge into, and where in it each id stands: the last one, where it is twice."""
    places = {message.id: index for index, message in enumerate(value) if message.id is not None}
    return [as_object(message) for message in value], places
