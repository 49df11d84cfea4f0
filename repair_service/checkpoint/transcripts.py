"""The lists of messages that a head holds, delta channels rebuilt from history among them."""

from collections.abc import Sequence

from repair_service.checkpoint.delta import History, history_of
from repair_service.checkpoint.head import Head
from repair_service.checkpoint.layout import stores_inline
from repair_service.checkpoint.rows import BlobRow, HeadRows
from repair_service.checkpoint.triggers import named_node
from repair_service.errors import Unreadable
from repair_service.transcript.message import Message, Transcript
from repair_service.transcript.read import looks_like_transcript, read_messages, read_transcript
from repair_service.transcript.replay import replay
from repair_service.transcript.wire import is_extension, is_mapping

ROOT = "__root__"
"""The channel of a graph whose state is one value (langgraph/graph/state.py)."""

_JS_SNAPSHOT = b'{"lc":2,"type":"delta_snapshot"'
"""How LangGraph.js begins the whole value of a delta channel (its checkpoint/serde/jsonplus.ts)."""

_LISTS = frozenset({"msgpack", "json"})
_NO_LISTS = frozenset({"empty", "null", "bytes", "bytearray"})


def needs_history(head: Head) -> frozenset[str]:
    """The channels that cannot be read without the checkpoints before the head.

    These are the delta channels that have a version and no value here. Where the head shows no
    message list at all, also the channels whose value may have been lost: they have a version, and
    neither a value in the checkpoint nor a blob.
    """
    missing = head.versions.keys() - head.valued
    delta = frozenset(missing & head.delta_channels)
    if delta or any(_may_be_transcript(channel, blob) for channel, blob in head.rows.blobs.items()):
        return delta
    return frozenset(missing & _without_blob(head))


def read_transcripts(
    head: Head, ancestors: Sequence[HeadRows], pruned: bool
) -> dict[str, Transcript]:
    """Every list of messages of a head, by channel.

    Args:
        head: The head.
        ancestors: The checkpoints before it, nearest first; needed for `needs_history(head)`.
        pruned: Whether the chain of ancestors breaks off at a parent that has no row.

    Raises:
        Unreadable: The blob of a channel that may hold a list is missing, corrupt, pickled, of an
            unknown type or encrypted without its key; or the history of a delta channel is not
            complete.
    """
    found: dict[str, Transcript] = {}
    unknown: Unreadable | None = None
    history = needs_history(head)
    for channel in head.versions:
        if not _holds_state(head, channel):
            continue
        if channel in history:
            transcript = _from_history(head, channel, ancestors, pruned)
        else:
            try:
                transcript = _from_blob(head, channel)
            except _UnknownType as problem:
                unknown = problem
                continue
        if transcript is not None:
            found[channel] = transcript
    # A value that is not read matters only where it may be the one list of messages.
    if not found:
        if unknown is not None:
            raise unknown
        _refuse_corrupt(head)
    return found


class _UnknownType(Unreadable):
    """A blob that nobody may open, which can be any kind of value."""


def _holds_state(head: Head, channel: str) -> bool:
    """Whether a channel can hold messages: none that only starts nodes, and none of LangGraph's."""
    if channel == ROOT:
        return True
    node_channel = any(channel in task.triggers and task.node is None for task in head.tasks)
    return named_node(channel) is None and not channel.startswith("__") and not node_channel


def _from_blob(head: Head, channel: str) -> Transcript | None:
    blob = head.rows.blobs.get(channel)
    if blob is None:
        if channel not in head.valued and channel in _without_blob(head):
            _refuse_if_stored(head, channel)
        return None
    if blob.type in _NO_LISTS or blob.left_out:
        return None
    _refuse_unusable(channel, blob)
    if blob.type not in _LISTS:
        raise _UnknownType(
            f"the channel {channel!r} is stored as {blob.type[:40]!r}, which cannot be read safely"
        )
    if blob.type == "json" and (blob.blob or b"").startswith(_JS_SNAPSHOT):
        raise _js_delta(channel)
    if not _may_be_transcript(channel, blob):
        return None
    return _read(channel, blob)


def _js_delta(channel: str) -> Unreadable:
    return Unreadable(
        f"the channel {channel!r} is a delta channel of LangGraph.js, which is not understood"
    )


def _refuse_corrupt(head: Head) -> None:
    """Refuse a head without any list where one may be cut off too early to be known as one."""
    for channel, blob in head.rows.blobs.items():
        if blob.left_out and _holds_state(head, channel):
            raise Unreadable(f"the bytes of the channel {channel!r} were not fetched")
        if blob.type in _LISTS and blob.blob is not None and _holds_state(head, channel):
            _read(channel, blob)


def _read(channel: str, blob: BlobRow) -> Transcript | None:
    try:
        return read_transcript(blob.type, blob.blob or b"")
    except Unreadable as problem:
        raise Unreadable(f"the channel {channel!r} cannot be read: {problem}") from problem


def _refuse_if_stored(head: Head, channel: str) -> None:
    """Refuse a channel without a blob in a layout that stores one for every version."""
    if not stores_inline(head.row, head.layout):
        raise Unreadable(
            f"the blob of the channel {channel!r} is missing; restore it from a backup"
        )


def _refuse_unusable(channel: str, blob: BlobRow) -> None:
    if blob.problem is not None:
        raise Unreadable(f"the channel {channel!r} cannot be read: {blob.problem}")
    if blob.blob is None:
        raise Unreadable(
            f"the blob of the channel {channel!r} has no bytes; restore it from a backup"
        )


def _may_be_transcript(channel: str, blob: BlobRow) -> bool:
    if blob.blob is None or blob.type not in _LISTS:
        return False
    return channel == ROOT or looks_like_transcript(blob.type, blob.blob)


def _without_blob(head: Head) -> frozenset[str]:
    """The state channels that have a version and no blob."""
    return frozenset(
        channel
        for channel in head.versions
        if channel not in head.rows.blobs and _holds_state(head, channel)
    )


def _from_history(
    head: Head, channel: str, ancestors: Sequence[HeadRows], pruned: bool
) -> Transcript | None:
    """A channel without a value here, rebuilt from the checkpoints before."""
    if channel not in head.delta_channels:
        _refuse_if_stored(head, channel)
        _refuse_if_lost(channel, ancestors)
        return None
    if head.layout.startswith("js"):
        raise _js_delta(channel)
    history = history_of(channel, head.rows, ancestors, pruned)
    if not _has_messages(channel, history):
        return None
    try:
        return Transcript("msgpack", replay(_seed(channel, history), _writes(history)))
    except Unreadable as problem:
        raise Unreadable(f"the channel {channel!r} cannot be rebuilt: {problem}") from problem


def _refuse_if_lost(channel: str, ancestors: Sequence[HeadRows]) -> None:
    """Refuse a channel that held messages before and is neither cleared nor kept out of the store.

    A channel that is never stored (UntrackedValue) has no writes either, and one that lives for one
    step holds no messages.
    """
    for ancestor in ancestors:
        blob = ancestor.blobs.get(channel)
        stored = blob is not None and _may_be_transcript(channel, blob)
        if stored or any(
            looks_like_transcript(write.type, write.blob)
            for write in ancestor.writes
            if write.channel == channel
        ):
            raise Unreadable(
                f"the blob of the channel {channel!r} is missing; restore it from a backup"
            )


def _has_messages(channel: str, history: History) -> bool:
    if history.seed is not None:
        _refuse_unusable(channel, history.seed)
        if _may_be_transcript(channel, history.seed):
            return True
    for write in history.writes:
        if write.problem is not None:
            raise Unreadable(f"a write on the channel {channel!r} cannot be read: {write.problem}")
    return any(_is_message(write.type, write.blob) for write in history.writes)


def _is_message(type_: str, blob: bytes) -> bool:
    """Whether a write is a message or a list with one in it; plain texts alone are none."""
    if type_ not in _LISTS:
        return False
    try:
        messages = read_messages(type_, blob)
    except Unreadable:
        return looks_like_transcript(type_, blob)
    return any(is_extension(m.raw) or is_mapping(m.raw) or not m.raw for m in messages)


def _seed(channel: str, history: History) -> tuple[Message, ...]:
    if history.seed is None or history.seed.type in _NO_LISTS:
        return ()
    transcript = read_transcript(history.seed.type, history.seed.blob or b"")
    if transcript is None or transcript.path:
        raise Unreadable(f"the snapshot of the channel {channel!r} is no list of messages")
    return transcript.messages


def _writes(history: History) -> list[tuple[Message, ...]]:
    return [read_messages(write.type, write.blob) for write in history.writes]
