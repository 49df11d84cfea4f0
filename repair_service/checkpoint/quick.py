"""The quick look at a head: the values of one at which nothing is going on.

A scan asks this of every head. Most have no pending writes, nothing scheduled, and their lists
stored whole; for these the whole reading (`tasks.read_head`, `transcripts.read_transcripts`) finds
no question and raises nothing but for what is in the lists. Anything else is left to it.
"""

import re
from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from repair_service.checkpoint.layout import are_version_texts
from repair_service.checkpoint.rows import BlobRow, ScannedHead
from repair_service.checkpoint.triggers import SENDS
from repair_service.transcript.write import MARK

_NO_SENDS: Final = ("msgpack", b"\x90")
_NO_LISTS: Final = frozenset({"empty", "null", "bytes", "bytearray"})
_SENDS_NAME: Final = f'"{SENDS}"'
_NULL: Final = Raw(b"null")
_NOTHING: Final = frozenset({b"{}", b"null"})

_LONGEST_NUMBER: Final = 4_300
"""Digits that Python takes for a number at most (sys.get_int_max_str_digits)."""

_too_long: Final = re.compile(f"[0-9]{{{_LONGEST_NUMBER}}}").search


class _Document(msgspec.Struct, gc=False):
    """What the whole reading asks of a checkpoint; only the shape of most of it counts."""

    v: Literal[4]
    channel_values: dict[str, Raw]
    channel_versions: dict[str, str]
    versions_seen: dict[str, dict[str, str]] = {}
    id: str | UnsetType = UNSET


class _Metadata(msgspec.Struct, gc=False):
    step: int
    counters_since_delta_snapshot: Raw = _NULL
    ours: Any = msgspec.field(name=MARK, default=UNSET)


_document: Final = msgspec.json.Decoder(_Document).decode
_metadata: Final = msgspec.json.Decoder(_Metadata).decode


def is_plain(checkpoint: str, metadata: str, checkpoint_id: str) -> bool:
    """Whether a checkpoint is surely well formed, of format 4 of the Python library, without delta
    channels and without a trigger that has a value; and no patch, into which a result that came
    late may belong.

    Args:
        checkpoint: Its document, as JSON.
        metadata: Its metadata, as JSON.
        checkpoint_id: Its id.
    """
    try:
        document, about = _document(checkpoint), _metadata(metadata)
    except (msgspec.DecodeError, RecursionError, ValueError):
        return False
    if document.id is not UNSET and document.id != checkpoint_id:
        return False
    if about.ours is not UNSET or bytes(about.counters_since_delta_snapshot) not in _NOTHING:
        return False
    for name in document.channel_values:
        if ":" in name or name.startswith("__"):
            return False
    if _has_long_number(checkpoint) or _has_long_number(metadata):
        return False
    return are_version_texts(document.channel_versions.values())


def quiet_values(head: ScannedHead) -> list[BlobRow]:
    """The values that may be lists of messages, at a head at which nothing is going on.

    Args:
        head: The head.

    Returns:
        The blobs, with their bytes; none of them also where it is not certain that the head is such
        a one. Only heads of format 4 of the Python library are.
    """
    if head.writes or head.parent_writes or not head.plain:
        return []
    if SENDS not in head.blobs and _SENDS_NAME in head.checkpoint:
        return []  # they may be lost
    values = []
    for channel, blob in head.blobs.items():
        if blob.problem is not None:
            return []
        if channel.startswith("__") or ":" in channel:
            # Whatever starts a node, waits for it, or is the whole state.
            if blob.type != "empty" and (channel != SENDS or (blob.type, blob.blob) != _NO_SENDS):
                return []
        elif blob.type not in _NO_LISTS and not blob.left_out:
            if not blob.blob or blob.type not in ("msgpack", "json"):
                return []
            values.append(blob)
    return values


def _has_long_number(text: str) -> bool:
    """Whether there may be a number that Python refuses to read, though the quick look skips it."""
    return len(text) >= _LONGEST_NUMBER and _too_long(text) is not None
