"""Real results on disk for calls that have none in the transcript.

A result is taken only from the writes of a checkpoint's own tasks, only when it is a tool message,
and only for a call that is open. Two sources exist: the finished siblings of the step that is still
pending, and, where an input overtook a step, the finished tasks that LangGraph then dropped.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from repair_service.checkpoint.head import Head, Task
from repair_service.checkpoint.identifiers import NULL_TASK, update_task_id
from repair_service.checkpoint.rows import HeadRows, WriteRow
from repair_service.repair.lineage import is_copy, schedules_again, was_taken_up
from repair_service.repair.placeholder import message_id
from repair_service.repair.route import (
    NOT_OWN_PATHS,
    by_task,
    pulled_node,
    readable_messages,
    started_nodes,
    trigger_writes,
)
from repair_service.transcript.element import asks_the_same
from repair_service.transcript.message import Message, ToolCall, Transcript
from repair_service.transcript.read import read_messages
from repair_service.transcript.write import with_id

OpenCall = tuple[int, int, ToolCall]
"""Index of the AI message, place among its calls, and the call."""

Salvaged = dict[tuple[int, int], Message]
"""Real results by AI message index and place among its calls."""

CALLED = "__return__"
"""Where a task of the functional API leaves its result for the node that called it, which finds it
again by where the node stands (langgraph/pregel/_call.py, _algo.py `prepare_push_task_functional`).
"""

BOOKKEEPING = frozenset({"__no_writes__", CALLED})
"""Channels of a task's writes that are no part of the state."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """What tasks left whose step was dropped.

    Attributes:
        results: The results of tasks that wrote nothing else to the state.
        beside: The channels that the others wrote beside a result that is wanted. A task has all of
            its writes taken up or none, and theirs are lost: the result alone may say what the
            state does not hold.
    """

    results: Salvaged
    beside: frozenset[str]


def from_siblings(tasks: Iterable[Task], channel: str, calls: Sequence[OpenCall]) -> Salvaged:
    """The results that finished tasks of the pending step hold for the step's own open calls.

    Args:
        tasks: The step's tasks; unfinished ones hold nothing.
        channel: The transcript's channel.
        calls: The open calls of the step's own AI message.

    Raises:
        Unreadable: A finished task's write on the channel cannot be read.
    """
    found: Salvaged = {}
    for task in tasks:
        if not task.finished:
            continue
        for message in written_messages(task.writes, channel):
            for index, position, call in calls:
                if message.kind == "tool" and call.id and message.answers == call.id:
                    found.setdefault((index, position), message)
    return found


def from_ancestors(
    head: Head,
    transcript: Transcript,
    channel: str,
    ancestors: Sequence[HeadRows],
    calls: Sequence[OpenCall],
    nearest: int | None = None,
) -> Dropped:
    """The results that an overtaking input dropped, found at the checkpoint before the input.

    A call's id says which call is meant only where one message of the transcript uses it: ids are
    used again in later turns, and a result of another turn is no result of this one. The other turn
    may have been trimmed from the list, so two more things must hold. The result was dropped: one
    that the next step took up stood in the list, and whoever removed it wanted it gone. And it is
    not older than the call's own message as it stands now. Nor is it taken where the call ran again
    since: it says nothing of how that ended. Writes of the caller (`update_state`) are not a
    task's, and never taken; nor is a list that replaced another.

    Args:
        head: The head.
        transcript: The list of messages.
        channel: Its channel.
        ancestors: The checkpoints before the head, nearest first.
        calls: The open calls.
        nearest: At how many of the ancestors to look for results; None for all.

    Source: langgraph/pregel/_loop.py (`_first`: input discards unfinished tasks).

    Raises:
        Unreadable: An ancestor's write on the channel cannot be read.
    """
    uses = Counter(call.id for message in transcript.messages for call in message.calls)
    wanted = {call.id: (index, position) for index, position, call in calls if uses[call.id] == 1}
    found: Salvaged = {}
    beside: set[str] = set()
    for depth, (child, ancestor) in enumerate(pairwise((head.rows, *ancestors[:nearest]))):
        if not wanted:
            break
        if was_taken_up(child, ancestor) or is_copy(child):
            continue
        for message, others, started in _dropped_results(head, ancestor, channel):
            place = wanted.get(message.answers)
            if place is None or message.answers is None:
                continue
            if schedules_again(child, message.answers, started):
                continue
            caller = transcript.messages[place[0]]
            if _answers_another(caller, message.answers, channel, ancestors, depth):
                continue
            del wanted[message.answers]
            beside |= others
            if not others and not message.placeholder:
                found[place] = message
    return Dropped(found, frozenset(beside))


def _dropped_results(
    head: Head, ancestor: HeadRows, channel: str
) -> Iterator[tuple[Message, set[str], tuple[str, ...]]]:
    """The tool messages that a checkpoint's own tasks wrote to a channel.

    Each with the channels that its task wrote to beside it, and the nodes that it started.
    """
    callers = (NULL_TASK, update_task_id(ancestor.row.checkpoint_id))
    for writes in by_task(ancestor.writes):
        if writes[0].task_id in callers or writes[0].task_path.startswith(NOT_OWN_PATHS):
            continue
        messages = written_messages(writes, channel)
        if any(message.kind == "overwrite" for message in messages):
            continue
        others = {write.channel for write in writes if write.idx >= 0} - {channel} - BOOKKEEPING
        triggers = trigger_writes(head, writes, pulled_node(writes[0]))
        started = started_nodes(head, triggers)
        for message in messages:
            if message.kind == "tool":
                yield message, others - triggers.keys(), started


def _answers_another(
    caller: Message, call_id: str, channel: str, ancestors: Sequence[HeadRows], depth: int
) -> bool:
    """Whether what an ancestor's tasks wrote answers another form of a call, or is older.

    The message may have been written again since (a list that is trimmed at each step): its last
    writing before the ancestor counts, and must ask for what stands in the list now. A person who
    goes back and edits a call keeps its id. The bytes may differ all the same: a list is stored
    anew with each step, in the form of the release that stores it. Where no writing is on disk the
    rows say nothing against it.
    """
    if caller.id is None:
        return False
    written = [
        (place, message)
        for place, ancestor in enumerate(ancestors)
        for message in readable_messages(ancestor.writes, channel)
        if message.id == caller.id
    ]
    before = [message for place, message in written if place > depth]
    return not asks_the_same(before[0], caller, call_id) if before else bool(written)


def written_messages(writes: Iterable[WriteRow], channel: str) -> list[Message]:
    """The messages that a task wrote to a channel, in order.

    Raises:
        Unreadable: A write on the channel cannot be read.
    """
    return [
        message
        for write in writes
        if write.channel == channel and write.idx >= 0
        for message in read_messages(write.type, write.blob)
    ]


def named(
    head: Head, channel: str, transcript: Transcript, salvaged: Mapping[tuple[int, int], Message]
) -> Salvaged:
    """The same results, each with a message id where the list's messages have ids.

    LangGraph gives a message its id when it merges it into the list, so a pending write of an older
    release has none yet. A list that is not merged by id (plain dicts, say, that are sent to a
    provider as they stand) takes its results as they are.
    """
    if not all(message.id for message in transcript.messages):
        return dict(salvaged)
    return {
        (index, position): message
        if message.id
        else with_id(
            transcript.encoding,
            message,
            message_id(head, channel, index, message.answers or ""),
        )
        for (index, position), message in salvaged.items()
    }
