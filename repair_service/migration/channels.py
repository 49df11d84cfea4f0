"""State keys that have another name."""

from collections.abc import Mapping

import msgspec

from repair_service.checkpoint.head import Head
from repair_service.checkpoint.triggers import INPUT, SENDS
from repair_service.errors import NotCarried
from repair_service.migration.naming import placed
from repair_service.migration.values import changed_arguments
from repair_service.repair.stuck import graph_path


class ChannelChanges:
    """Renamed state keys; see `rewriting.Rewriting`."""

    everywhere = False

    def __init__(self, renames: Mapping[str, str], *, leftovers: bool) -> None:
        """Prepare the change.

        Args:
            renames: By place (`KEY`, or `NODE|KEY` in the graph that NODE is), the new names.
            leftovers: Whether a head is concerned that has no more than an old name.
        """
        self._leftovers = leftovers
        self._renames = {
            place: new for place, new in renames.items() if place.rpartition("|")[2] != new
        }
        self._of_graph: dict[str, Mapping[str, str]] = {}

    def touches(self, head: Head) -> bool:
        """Whether a renamed key has a value, or a finished task has written it."""
        keys = self.keys(head.row.checkpoint_ns)
        if not keys:
            return False
        held = head.valued | (head.delta_channels & head.versions.keys())
        if INPUT in head.valued:
            raise NotCarried(
                "an input was stored that no step has taken up, and it may have the old key: let "
                "it go on with the old graph"
            )
        if self._leftovers and head.versions.keys() & keys.keys():
            return True
        if held & keys.keys() or any(write.channel in keys for write in head.rows.writes):
            return True
        # A Send may carry the state with it.
        blob = head.rows.blobs.get(SENDS)
        sends = [(write.type, write.blob) for write in head.rows.writes if write.channel == SENDS]
        if blob is not None and blob.blob is not None and blob.type in ("msgpack", "json"):
            sends.append((blob.type, blob.blob))
        return any(self.value(head, SENDS, *each) is not each[1] for each in sends)

    def changes(self, head: Head) -> tuple[str, ...]:
        """Which keys are renamed at a head."""
        keys = self.keys(head.row.checkpoint_ns)
        return tuple(f"{old} becomes {new}" for old, new in keys.items() if old in head.versions)

    def keys(self, namespace: str) -> Mapping[str, str]:
        """By name, the new names of the keys of a namespace's graph."""
        path = graph_path(namespace)
        if path not in self._of_graph:
            start = placed(path, "")
            self._of_graph[path] = {
                place.removeprefix(start): new
                for place, new in self._renames.items()
                if place.startswith(start) and "|" not in place.removeprefix(start)
            }
        return self._of_graph[path]

    def node(self, namespace: str, name: str) -> str | None:
        """A node's name, which stays."""
        return name

    def channel(self, head: Head, name: str) -> str:
        """A channel's name, which may be a renamed key."""
        return self.keys(head.row.checkpoint_ns).get(name, name)

    def is_gone(self, head: Head, name: str) -> bool:
        """None goes."""
        return False

    def value(self, head: Head, channel: str, type_: str, data: bytes) -> bytes:
        """Scheduled Sends may hold the state; no other value names a key for certain.

        Raises:
            NotCarried: The argument of a Send has a field of an old key's name.
        """
        if channel != SENDS:
            return data
        keys = self.keys(head.row.checkpoint_ns)
        named = [name for name in keys if name.encode() in data]
        if not named:
            return data
        if type_ != "msgpack":
            raise NotCarried(_ARGUMENT.format(named[0]))
        new = changed_arguments(data, lambda argument: _renamed_state(argument, keys))
        return data if new == data else new

    def write(self, head: Head, channel: str, type_: str, data: bytes) -> bytes:
        """The same of a pending write."""
        return self.value(head, channel, type_, data)


_CALL_WITH_STATE = "tool_call_with_context"
"""The `__type` of a mapping that carries a tool call with the whole state beside it, under `state`
(langgraph/prebuilt/tool_node.py `ToolCallWithContext`)."""


def _renamed_state(argument: bytes, keys: Mapping[str, str]) -> bytes:
    """A Send's argument under the new names, where it is known to hold the state."""
    try:
        fields = msgspec.msgpack.decode(argument, type=dict[str, msgspec.Raw])
        kind = fields.get("__type")
        carries = kind is not None and msgspec.msgpack.decode(kind) == _CALL_WITH_STATE
        if not carries:
            _refuse_fields(fields, keys)
            return argument
        state = msgspec.msgpack.decode(fields["state"], type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, KeyError):
        # No mapping, a mapping with other keys, or an object: its bytes say whether it has one.
        if any(name.encode() in bytes(argument) for name in keys):
            raise NotCarried(_ARGUMENT.format(sorted(keys)[0])) from None
        return argument
    renamed = {keys.get(name, name): value for name, value in state.items()}
    fields["state"] = msgspec.Raw(msgspec.msgpack.encode(renamed))
    return msgspec.msgpack.encode(fields)


_ARGUMENT = (
    "the argument of a scheduled Send has {!r} in it, and whether that is the state key or the "
    "node's own is not known: let it go on with the old graph"
)


def _refuse_fields(fields: Mapping[str, object], keys: Mapping[str, str]) -> None:
    for name in fields.keys() & keys.keys():
        raise NotCarried(_ARGUMENT.format(name))
