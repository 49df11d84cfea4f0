"""Static breakpoints, as the store's own history shows them.

Nothing is stored at a static breakpoint (`interrupt_before`). But a run that is resumed records in
`versions_seen.__interrupt__` the versions of the checkpoint that it stopped at. A node before which
every run of late stopped and was resumed, again and again, is a breakpoint, not a place of death.

Source: langgraph/pregel/_loop.py (`_first`), langgraph/pregel/_algo.py (`should_interrupt`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise

from repair_service.checkpoint.compose import is_patch
from repair_service.checkpoint.head import Head
from repair_service.checkpoint.rows import HeadRows
from repair_service.checkpoint.sends import scheduled_sends
from repair_service.checkpoint.triggers import SENDS
from repair_service.errors import Unreadable
from repair_service.repair.graph import Graph, graph_of

AGAIN_AND_AGAIN = 2
"""Stops before a node that make it a breakpoint: one may be a crash that somebody resumed."""

_ASKED = frozenset({"__interrupt__", "__resume__"})


@dataclass(frozen=True, slots=True)
class NodeRun:
    """One time a node ran.

    Attributes:
        thread_id: The thread it ran in.
        graph: The graph it ran in.
        node: The node.
        stopped: Whether the run had stopped before it, with no question asked, and was resumed.
    """

    thread_id: str
    graph: Graph
    node: str
    stopped: bool


def node_runs(head: Head, ancestors: Sequence[HeadRows]) -> Iterator[NodeRun]:
    """The node runs that a thread's history shows, latest first."""
    graph = graph_of(head)
    chain = (head.rows, *ancestors)
    for place, (newer, older) in enumerate(pairwise(chain)):
        if not (_is_document(newer) and _is_document(older)):
            continue
        if newer.row.metadata.get("source") != "loop":
            # An input drops what was pending, and a fork or an update runs nothing.
            continue
        stopped = _was_resumed_at(older, newer)
        before = chain[place + 2] if place + 2 < len(chain) else None
        for node in sorted(_ran(older, newer, before)):
            yield NodeRun(head.row.thread_id, graph, node, stopped)


def is_breakpoint(
    node: str, own: Iterable[NodeRun], fleet: Callable[[], Sequence[NodeRun]], head: Head
) -> bool:
    """Whether runs stop before a node again and again.

    Args:
        node: A node that is pending at the head.
        own: The thread's own node runs, latest first: where they are enough, they decide, and no
            more of them are asked for.
        fleet: Gives those of a sample of threads; asked only where the thread's own leave it open.
            The thread itself may be among them, and is not counted twice.
        head: The head.
    """
    mine = list(islice((run.stopped for run in own if run.node == node), AGAIN_AND_AGAIN))
    if len(mine) < AGAIN_AND_AGAIN and all(mine):
        graph = graph_of(head)
        mine += [
            run.stopped
            for run in fleet()
            if run.node == node and run.thread_id != head.row.thread_id and graph.may_be(run.graph)
        ]
    return len(mine) >= AGAIN_AND_AGAIN and all(mine)


def _was_resumed_at(older: HeadRows, newer: HeadRows) -> bool:
    """Whether a run stopped at the older checkpoint without a question, and was resumed there."""
    seen = _seen(newer).get("__interrupt__")
    if not isinstance(seen, Mapping) or seen != older.row.checkpoint.get("channel_versions"):
        return False
    return not is_patch(older.row) and not any(write.channel in _ASKED for write in older.writes)


def _ran(older: HeadRows, newer: HeadRows, before: HeadRows | None) -> set[str]:
    """The nodes that ran between two checkpoints: pulled ones, and those of Sends."""
    was, now = _seen(older), _seen(newer)
    nodes = {node for node in now if not node.startswith("__") and now[node] != was.get(node)}
    # In every layout the Sends of a checkpoint are writes of its parent.
    sends = tuple(write for write in before.writes if write.channel == SENDS) if before else ()
    if sends:
        try:
            asked = replace(older, parent_writes=sends)
            nodes |= {send.node for send in scheduled_sends(asked, "python-3")}
        except Unreadable:
            pass
    return nodes


def _is_document(rows: HeadRows) -> bool:
    """Whether a checkpoint of the past is one at all: a damaged one shows nothing."""
    return isinstance(rows.row.checkpoint, dict) and isinstance(rows.row.metadata, dict)


def _seen(rows: HeadRows) -> Mapping[str, object]:
    seen = rows.row.checkpoint.get("versions_seen")
    return seen if isinstance(seen, Mapping) else {}
