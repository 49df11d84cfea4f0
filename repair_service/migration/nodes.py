"""Nodes that have other names, or are no more."""

from collections.abc import Iterable, Mapping

from repair_service.checkpoint.head import Head
from repair_service.checkpoint.identifiers import NULL_TASK
from repair_service.checkpoint.layout import NODE_CHANNEL_LAYOUTS, stores_inline
from repair_service.checkpoint.rows import WriteRow
from repair_service.checkpoint.triggers import INPUT, JOIN, SENDS, has_fired, named_node
from repair_service.checkpoint.values import decode
from repair_service.errors import NotCarried, Unreadable
from repair_service.migration.naming import SENDER, placed, renamed_trigger
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

    def __init__(
        self, renames: Mapping[str, str], removed: Iterable[str], *, leftovers: bool
    ) -> None:
        """Prepare the change.

        Args:
            renames: By place (`NODE`, `PARENT|NODE`), the new names.
            removed: The places of nodes that are no more.
            leftovers: Whether a head is concerned that has no more than an old name.
        """
        self._leftovers = leftovers
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
        if self._leftovers and any(
            self.channel(head, channel) != channel or self.is_gone(head, channel)
            for channel in head.versions
        ):
            return True
        if any(self._may_be_of(head, write) for write in head.stray_writes):
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

    def _may_be_of(self, head: Head, write: WriteRow) -> bool:
        """Whether a write that no known task made may be of a renamed or removed node.

        A workflow of the functional API is a node that only the paths of its writes name before it
        has run once, and so are the tasks that it calls (langgraph/pregel/_algo.py,
        `prepare_push_task_functional`).
        """
        if write.task_id == NULL_TASK:
            return False
        if not write.task_path:
            return any(task.node == INPUT for task in head.tasks)
        nodes, path = self.nodes(head.row.checkpoint_ns), graph_path(head.row.checkpoint_ns)
        return any(
            name in nodes or placed(path, name) in self._removed
            for name in write.task_path.split(", ")
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

    def is_gone(self, head: Head, name: str) -> bool:
        """Whether a channel starts a removed node, or is a barrier for one that nobody stands at.

        What is left of it would let every static breakpoint of the thread stop its runs for ever:
        LangGraph marks as seen only the channels that the graph has (langgraph/pregel/_loop.py
        `_first`), and asks for all that the checkpoint names (_algo.py `should_interrupt`).
        """
        path = graph_path(head.row.checkpoint_ns)
        if name in self._of_nodes(head) and placed(path, name) in self._removed:
            return True
        node = named_node(name)
        if node is not None and node != INPUT and placed(path, node) in self._removed:
            return True
        if not name.startswith(JOIN):
            return False
        senders = name.removeprefix(JOIN).rpartition(":")[0].split(SENDER)
        removed = any(placed(path, sender) in self._removed for sender in senders)
        return removed and self._is_empty(head, name)

    @staticmethod
    def _of_nodes(head: Head) -> Iterable[str]:
        """The channels that are named as nodes are, where a layout has such."""
        return head.versions if head.layout in NODE_CHANNEL_LAYOUTS else ()

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
        for name in senders.split(SENDER):
            if placed(path, name) in self._removed and not fired:
                raise NotCarried(f"{node!r} waits for {name!r}, which is removed")


def _same(data: bytes, new: bytes) -> bytes:
    return data if new == data else new
