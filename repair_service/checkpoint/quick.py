"""The quick look at a head: the values of one at which nothing is going on.

A scan asks this of every head. Most have no pending writes, nothing scheduled, and their lists
stored whole; for these the whole reading (`tasks.read_head`, `transcripts.read_transcripts`) finds
no question and raises nothing but for what is in the lists. Anything else is left to it.
"""

from typing import Any, Final

from repair_service.checkpoint.layout import are_version_texts
from repair_service.checkpoint.rows import BlobRow, HeadRows
from repair_service.checkpoint.triggers import SENDS
from repair_service.transcript.write import MARK

_NO_SENDS: Final = ("msgpack", b"\x90")
_NO_LISTS: Final = frozenset({"empty", "null", "bytes", "bytearray"})


def quiet_values(rows: HeadRows) -> list[BlobRow]:
    """The values that may be lists of messages, at a head at which nothing is going on.

    Args:
        rows: The head's rows.

    Returns:
        The blobs, with their bytes; none of them also where it is not certain that the head is such
        a one. Only heads of format 4 of the Python library are.
    """
    if rows.writes or rows.parent_writes or not _is_plain(rows):
        return []
    values = []
    for channel, blob in rows.blobs.items():
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


def _is_plain(rows: HeadRows) -> bool:
    """Whether a checkpoint is well formed, of format 4 of the Python library, without delta
    channels and without a trigger that has a value."""
    document: Any = rows.row.checkpoint
    metadata: Any = rows.row.metadata
    if type(document) is not dict or type(metadata) is not dict:
        return False
    if type(document.get("v")) is not int or document["v"] != 4:
        return False
    if document.get("id", rows.row.checkpoint_id) != rows.row.checkpoint_id:
        return False
    if type(metadata.get("step")) is not int or metadata.get("counters_since_delta_snapshot"):
        return False
    if MARK in metadata:
        return False  # a result that came late may belong into a patch
    values, seen = document.get("channel_values"), document.get("versions_seen", {})
    if type(values) is not dict or type(seen) is not dict:
        return False
    for name in values:
        if ":" in name or name.startswith("__"):
            return False
    for versions in seen.values():
        if type(versions) is not dict or not _are_texts(versions):
            return False
    versions = document.get("channel_versions")
    if type(versions) is not dict or (SENDS in versions and SENDS not in rows.blobs):
        return False
    return _are_texts(versions) and are_version_texts(versions.values())


def _are_texts(versions: dict[str, Any]) -> bool:
    return set(map(type, versions.values())) <= {str}
