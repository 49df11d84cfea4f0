"""Trigger channels: the channels that start nodes, known by their names.

Source: langgraph/graph/state.py (`attach_edge`, `attach_branch`, `_migrate_checkpoint`). A node's
name holds no `:` and no `|`; a condition's name may hold anything.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from repair_service.checkpoint.head import Head, Layout
from repair_service.checkpoint.layout import NODE_CHANNEL_LAYOUTS, stores_inline, versions_seen
from repair_service.checkpoint.rows import BlobRow
from repair_service.checkpoint.values import constructed, decode, encode, encode_set
from repair_service.errors import Unreadable

INPUT = "__start__"
SENDS = "__pregel_tasks"
JOIN = "join:"
RESERVED_NODES = frozenset({"__interrupt__", "__input__", "__snapshot_bumps__"})
"""Keys of `versions_seen` that are no nodes."""

_UNDEFINED = {"lc": 2, "type": "undefined"}
"""How LangGraph.js stores a channel that was written `undefined`, which is no value."""


def is_trigger(channel: str, layout: Layout, node: str | None) -> bool:
    """Whether a channel that a task wrote only starts nodes, and holds no state.

    Args:
        channel: The channel.
        layout: The head's layout.
        node: The node that wrote it, where it is known: in old layouts a node writes a channel of
            its own name.
    """
    if named_node(channel) is not None:
        return True
    return layout in NODE_CHANNEL_LAYOUTS and node is not None and channel == node


def node_started_by(channel: str, checkpoint: Mapping[str, Any]) -> str | None:
    """The node that a trigger channel starts, by its name or by who has seen it before.

    Args:
        channel: The channel.
        checkpoint: A checkpoint of the thread.

    Returns:
        The node; None where the name does not say it, and not exactly one node has seen it.
    """
    node = named_node(channel)
    if node is not None:
        return node
    seen = checkpoint.get("versions_seen")
    listeners = [
        name
        for name, versions in (seen.items() if isinstance(seen, Mapping) else ())
        if name not in RESERVED_NODES and isinstance(versions, Mapping) and channel in versions
    ]
    return listeners[0] if len(listeners) == 1 else None


def named_node(channel: str) -> str | None:
    """The node that a channel starts, as its name says: `branch:to:N`, `start:N`, `join:A+B:N`."""
    parts = channel.split(":")
    if parts[0] == "branch" and len(parts) >= 3 and (len(parts) > 3 or parts[1] == "to"):
        return parts[-1] or None
    if parts[0] == "start" and len(parts) == 2:
        return parts[1] or None
    if parts[0] == "join" and len(parts) >= 3:
        return parts[-1] or None
    return INPUT if channel == INPUT else None


def known_nodes(seen: Iterable[str], channels: Iterable[str]) -> frozenset[str]:
    """The names that are nodes: those that ran, and those that channels are named for."""
    ran = {name for name in seen if name not in RESERVED_NODES}
    named = {node for node in map(named_node, channels) if node is not None}
    return frozenset(ran | named)


def has_fired(channel: str, blob: BlobRow | None, *, inline: bool) -> bool:
    """Whether a channel that has a value may start its node.

    All may but for two kinds: a barrier (`join:A+B:N`) fires when every node that it waits for has
    been seen, and a deferred node's channel holds (value, whether all else has finished).

    Args:
        channel: The channel.
        blob: Its stored value; None where it is stored inline, which neither of these is.
        inline: Whether the layout stores simple values inline: then a blob is no simple value.

    Raises:
        Unreadable: The value cannot be read, or was not fetched and is needed.
    """
    if named_node(channel) in (None, INPUT):
        return True
    if blob is None or blob.type in ("null", "bytes", "bytearray"):
        return not channel.startswith(JOIN)
    if blob.problem is not None:
        raise Unreadable(blob.problem)
    if blob.blob is None and not inline and not channel.startswith(JOIN):
        return True
    value = decode(blob.type, blob.blob)
    deferred = isinstance(value, list) and len(value) == 2 and isinstance(value[1], bool)
    if deferred and not value[1]:
        return False
    if not channel.startswith(JOIN):
        return bool(value != _UNDEFINED)
    names = _names(value[0] if deferred else value)
    # The names seen are always among those waited for; a node's name may hold a `+` itself.
    return len("+".join(names)) == len(channel.removeprefix(JOIN).rpartition(":")[0])


def one_step_triggers(head: Head) -> frozenset[str]:
    """The trigger channels of a head that have a value and lose it with the step.

    All but those that wait for more: a barrier that is not full, a deferred node's channel while
    the rest of the graph runs (langgraph/channels: `EphemeralValue`, `NamedBarrierValue`,
    `LastValueAfterFinish`).

    Raises:
        Unreadable: The value of one of them cannot be read.
    """
    own = {channel for task in head.tasks for channel in task.triggers}
    inline = stores_inline(head.row, head.layout)
    nodes = known_nodes(versions_seen(head.row), head.versions)
    if head.layout not in NODE_CHANNEL_LAYOUTS:
        nodes = frozenset()
    return frozenset(
        channel
        for channel in head.valued
        if named_node(channel) is not None or channel in nodes
        if channel in own or has_fired(channel, head.rows.blobs.get(channel), inline=inline)
    )


def joined(blob: BlobRow | None, name: str, type_: str) -> tuple[str, bytes]:
    """The value of a barrier once one more node was seen.

    Args:
        blob: Its value so far; None where it has none.
        name: The node that arrived.
        type_: The serialization type to write.

    Raises:
        Unreadable: The value so far cannot be read.
    """
    value = None if blob is None or blob.type == "empty" else decode(blob.type, blob.blob)
    names = [] if value is None else _names(value)
    names = [*names, name] if name not in names else names
    return (type_, encode(type_, names)) if type_ == "json" else (type_, encode_set(names))


def _names(value: object) -> list[str]:
    """The names in a stored set."""
    found = constructed(value)
    names = found[1] if found is not None and found[0] == "set" else value
    if isinstance(names, Mapping) and names.get("lc") == 2 and names.get("id") == ["Set"]:
        names = (names.get("args") or [None])[0]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise Unreadable("a barrier's value is no set of names; restore the row from a backup")
    return names
