"""The quick look at a head: the lists of messages of one at which nothing is going on.

A scan asks this of every head. Most have no pending writes, nothing scheduled, and their lists
stored whole; for these the whole reading (`tasks.read_head`, `transcripts.read_transcripts`) finds
no question and raises nothing but for what is in the lists. Anything else is left to it.
"""

from typing import Any, Final

from repair_service.checkpoint.layout import is_version_text
from repair_service.checkpoint.rows import BlobRow, HeadRows
from repair_service.checkpoint.triggers import SENDS
from repair_service.transcript.read import looks_like_transcript
from repair_service.transcript.write import MARK

_NO_SENDS: Final = ("msgpack", b"\x90")
_NO_LISTS: Final = frozenset({"empty", "null", "bytes", "bytearray"})


def quiet_lists(rows: HeadRows) -> tuple[BlobRow, ...]:
    """The values that look like lists of messages, at a head at which nothing is going on.

    Args:
        rows: The head's rows.

    Returns:
        The blobs; none of them also where it is not certain that the head is such a one. Only
        heads of format 4 of the Python library are.
    """
    document: Any = rows.row.checkpoint
    metadata: Any = rows.row.metadata
    if rows.writes or rows.parent_writes or not _is_plain(document, metadata):
        return ()
    if document.get("id", rows.row.checkpoint_id) != rows.row.checkpoint_id:
        return ()
    lists = []
    for channel, blob in rows.blobs.items():
        if blob.type == "empty":
            continue
        if blob.problem is not None or blob.blob is None:
            return ()
        if channel.startswith("__") or ":" in channel:
            # Whatever starts a node, waits for it, or is the whole state.
            if channel != SENDS or (blob.type, blob.blob) != _NO_SENDS:
                return ()
        elif blob.type not in _NO_LISTS:
            if blob.type not in ("msgpack", "json"):
                return ()
            if looks_like_transcript(blob.type, blob.blob):
                lists.append(blob)
    return tuple(lists)


def _is_plain(document: Any, metadata: Any) -> bool:
    """Whether a checkpoint is well formed, of format 4 of the Python library, without delta
    channels and without a trigger that has a value."""
    if type(document) is not dict or type(metadata) is not dict:
        return False
    if type(document.get("v")) is not int or document["v"] != 4:
        return False
    if type(metadata.get("step")) is not int or metadata.get("counters_since_delta_snapshot"):
        return False
    if MARK in metadata:
        return False  # a result that came late may belong into a patch
    values, seen = document.get("channel_values"), document.get("versions_seen", {})
    if type(values) is not dict or any(":" in name or name[:2] == "__" for name in values):
        return False
    return (
        _are_versions(document.get("channel_versions"))
        and type(seen) is dict
        and all(_are_versions(versions) for versions in seen.values())
    )


def _are_versions(versions: Any) -> bool:
    return type(versions) is dict and all(
        type(version) is str and is_version_text(version) for version in versions.values()
    )
