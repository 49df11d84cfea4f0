"""Whether the value that starts a node is one that the node's trigger channel can hold.

A deferred node's trigger (`add_node(..., defer=True)`) is stored as the value and whether the rest
of the graph has finished, a plain one as the value alone, and a task writes the value alone to
both. LangGraph cannot load a checkpoint that holds a deferred trigger in the plain form, so a
channel is written only where the rows show which kind it is, or where one form serves both.

Source: langgraph/graph/state.py (`attach_node`, `attach_edge`), langgraph/channels/last_value.py
(`LastValueAfterFinish`), langgraph/channels/named_barrier_value.py.
"""

from collections.abc import Mapping, Sequence

from repair_service.checkpoint.head import Head
from repair_service.checkpoint.layout import stores_inline
from repair_service.checkpoint.rows import HeadRows
from repair_service.checkpoint.triggers import JOIN

Value = tuple[str, bytes]

FINISHED: Value = ("msgpack", b"\x92\xc0\xc3")
"""`[None, True]`: for a deferred trigger that all else has finished; for a plain one, any value."""


FINISHED_KEPT_APART: Mapping[str, Value] = {
    "python-3": FINISHED,
    "js-4": ("json", b"[null,true]"),
}
"""The same by layout, of those that keep each value in a blob and know deferred nodes."""


def arriving(
    head: Head, ancestors: Sequence[HeadRows], channels: Mapping[str, Value]
) -> Mapping[str, Value] | None:
    """The values to write to trigger channels; None where the rows do not tell one that is safe.

    A plain trigger has stood in a checkpoint itself, which a deferred one never does. One trigger
    alone may be of either kind: nothing else is to be waited for. A barrier that nobody has arrived
    at yet may belong to a deferred node too.

    Args:
        head: The head.
        ancestors: The checkpoints before it, nearest first.
        channels: The trigger channels, with the values as a task writes them.
    """
    if not stores_inline(head.row, head.layout):
        return _kept_apart(head, channels)
    unknown = [name for name in channels if not _is_known(name, head, ancestors)]
    if not unknown:
        return channels
    if len(channels) > 1 or unknown[0].startswith(JOIN):
        return None
    return {unknown[0]: FINISHED}


def _kept_apart(head: Head, channels: Mapping[str, Value]) -> Mapping[str, Value] | None:
    """The same where values are not in the document, which says nothing of what stood there then.

    Layouts that are not listed are of releases without deferred nodes.
    """
    finished = FINISHED_KEPT_APART.get(head.layout)
    if finished is None:
        return channels
    if len(channels) > 1 or any(name.startswith(JOIN) for name in channels):
        return None
    return dict.fromkeys(channels, finished)


def _is_known(channel: str, head: Head, ancestors: Sequence[HeadRows]) -> bool:
    """Whether a trigger was seen in the form that a task writes."""
    if channel.startswith(JOIN):
        stored = head.rows.blobs.get(channel)
        return stored is not None and stored.type != "empty"
    return any(channel in _inline(rows) for rows in (head.rows, *ancestors))


def _inline(rows: HeadRows) -> Mapping[str, object]:
    document = rows.row.checkpoint
    values = document.get("channel_values") if isinstance(document, dict) else None
    return values if isinstance(values, dict) else {}
