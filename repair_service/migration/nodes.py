"""Nodes that have other names, or are no more."""

from collections.abc import Iterable, Mapping

from repair_service.checkpoint.head import Head
from repair_service.checkpoint.layout import stores_inline
from repair_service.checkpoint.rows import WriteRow
from repair_service.checkpoint.triggers import JOIN, SENDS, has_fired
from repair_service.checkpoint.values import decode
from repair_service.errors import NotCarried, Unreadable
from repair_service.migration.naming import placed, renamed_trigger
from repair_service.migration.values import (
    barrier_names,
    renamed_barrier,
    renamed_sends,
    renamed_text,
)
from repair_service.repair.stuck import graph_path

ERROR_SOURCE = "__error_source_node__"


class NodeChanges:
    """Renamed and removed nodes; see `rewriting.Rewriting`."""

    everywhere = False

    def __init__(self, renames: Mapping[str, str], removed: Iterable[str]) -> None:
        """Prepare the change.

        Args:
            renames: By place (`NODE`, `PARENT|NODE`), the new names.
            removed: The places of nodes that are no more.
        """
        self._renames = {
            place: new for place, new in renames.items() if place.rpartition("|")[2] != new
        }
        self._removed = frozenset(removed)
        self._of_graph: dict[str, Mapping[str, str]] = {}

    def touches(self, head: Head) -> bool:
        """Whether something is pending at a renamed or removed node, or waits for one."""
        nodes = self.nodes(head.row.checkpoint_ns)
        path = graph_path(head.row.checkpoint_ns)
        for task in head.tasks:
            if task.node in nodes or placed(path, str(task.node)) in self._removed:
                return True
        if any(
            self.channel(head, channel) != channel and not self._is_empty(head, channel)
            for channel in head.valued
        ):
            return True
        # What a finished task has written for the next step.
        return any(
            self.channel(head, write.channel) != write.channel
            or (write.channel == SENDS and self._changes(head, write))
            for write in head.rows.writes
        )

    @staticmethod
    def _is_empty(head: Head, channel: str) -> bool:
        """Whether a channel is a barrier at which nobody has arrived, as it is at rest."""
        blob = head.rows.blobs.get(channel)
        if not channel.startswith(JOIN) or blob is None or blob.problem is not None:
            return False
        return not barrier_names(decode(blob.type, blob.blob))

    def _changes(self, head: Head, write: WriteRow) -> bool:
        if write.problem is not None:
            raise Unreadable(write.problem)
        return self.write(head, write.channel, write.type, write.blob) is not write.blob

    def changes(self, head: Head) -> tuple[str, ...]:
        """Nothing but nodes."""
        return ()

    def nodes(self, namespace: str) -> Mapping[str, str]:
        """By name, the new names of the nodes of a namespace's graph."""
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
        """A node's new name; None where it was removed."""
        if placed(graph_path(namespace), name) in self._removed:
            return None
        return self.nodes(namespace).get(name, name)

    def channel(self, head: Head, name: str) -> str:
        """A channel's name, which may be that of the node that it starts."""
        return renamed_trigger(head, name, self.nodes(head.row.checkpoint_ns))

    def value(self, head: Head, channel: str, type_: str, data: bytes) -> bytes:
        """Scheduled Sends and barriers; all else holds no name of a node."""
        namespace = head.row.checkpoint_ns
        if channel == SENDS:
            return _same(data, renamed_sends(type_, data, lambda name: self.node(namespace, name)))
        if channel.startswith(JOIN):
            self._check_barrier(head, channel)
            return renamed_barrier(type_, data, self.nodes(namespace))
        return data

    def write(self, head: Head, channel: str, type_: str, data: bytes) -> bytes:
        """What a task wrote to schedule another, or to say that it arrived."""
        namespace = head.row.checkpoint_ns
        if channel == SENDS:
            # One to a node that is no more is left to LangGraph, which passes over it.
            new = renamed_sends(type_, data, lambda name: self.node(namespace, name) or name)
            return _same(data, new)
        if channel.startswith(JOIN) or channel == ERROR_SOURCE:
            return renamed_text(type_, data, self.nodes(namespace))
        return data

    def _check_barrier(self, head: Head, channel: str) -> None:
        """Refuse a barrier that waits for a node which will never arrive."""
        path = graph_path(head.row.checkpoint_ns)
        senders, _, node = channel.removeprefix(JOIN).rpartition(":")
        fired = has_fired(
            channel, head.rows.blobs.get(channel), inline=stores_inline(head.row, head.layout)
        )
        for name in senders.split("+"):
            if placed(path, name) in self._removed and not fired:
                raise NotCarried(f"{node!r} waits for {name!r}, which is removed")


def _same(data: bytes, new: bytes) -> bytes:
    return data if new == data else new
