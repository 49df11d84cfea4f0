"""Where a mended step goes on: at the node that reads tool results.

The rows say it in one way only: the trigger channels that a task which returned tool results wrote
beside them. Where such tasks disagree, nothing is known.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from repair_service.checkpoint.head import Head
from repair_service.checkpoint.rows import HeadRows, WriteRow
from repair_service.checkpoint.tasks import is_trigger, node_started_by
from repair_service.errors import Unreadable
from repair_service.repair.graph import Graph, graph_of
from repair_service.repair.verdict import RouteSource
from repair_service.transcript.message import Message
from repair_service.transcript.read import read_messages

PULL_PATH = "~__pregel_pull, "
NOT_OWN_PATHS = ("~__interrupt__", "~~")
"""Paths of writes that are not of the checkpoint's own tasks.

What `update_state` leaves, and with `durability="exit"` a whole run's writes to delta channels,
which hang on one checkpoint and have been applied (langgraph/pregel/_checkpoint.py).
"""

_RESULT = re.compile(rb"[tT]ool(?!_call)|\\u")
"""What the bytes of a tool message hold: its type, role or class, unless JSON has it in escapes. A
model's messages, the largest thing in a history, seldom do."""

Value = tuple[str, bytes]
"""A channel value as it is stored: serialization type and bytes."""


@dataclass(frozen=True, slots=True)
class Route:
    """Trigger channels to write, by name, with the value that starts a node through each.

    Attributes:
        channels: The channels and their values; empty for a step after which the graph ended.
        nodes: The nodes they start, as far as the rows say it.
        source: How it was learned.
    """

    channels: Mapping[str, Value]
    nodes: tuple[str, ...]
    source: RouteSource


@dataclass(frozen=True, slots=True)
class ToolStep:
    """A task of the past that returned tool results, and where it went.

    Attributes:
        graph: The graph it ran in.
        node: The node it ran, where its path says it (a pulled node).
        tools: The tools whose results it returned.
        route: The trigger channels it wrote beside them.
        started: The nodes that those start, as far as its rows say it.
    """

    graph: Graph
    node: str | None
    tools: frozenset[str]
    route: Mapping[str, Value]
    started: tuple[str, ...]


def declared_route(head: Head, node: str) -> Route | None:
    """The route to a node that the operator named; None where no channel is known to start it."""
    if head.layout in ("python-3", "python-4"):
        return Route({f"branch:to:{node}": ("null", b"")}, (node,), "declared")
    if head.layout in ("js-3", "js-4"):
        return Route({f"branch:to:{node}": ("json", b"null")}, (node,), "declared")
    seen = head.row.checkpoint.get("versions_seen", {}).get(node, {})
    start = f"start:{node}"
    if start in seen or start in head.versions:
        return Route({start: ("msgpack", b"\xa9__start__")}, (node,), "declared")
    return None


def tool_steps(head: Head, ancestors: Sequence[HeadRows], channel: str) -> Iterator[ToolStep]:
    """The tasks before this head, nearest first, that returned tool results on a channel."""
    graph = graph_of(head)
    for ancestor in ancestors:
        if not any(_may_hold_result(write, channel) for write in ancestor.writes):
            continue
        for writes in by_task(ancestor.writes):
            results = [write for write in writes if _may_hold_result(write, channel)]
            messages = readable_messages(results, channel)
            tools = [message for message in messages if message.kind == "tool"]
            if not tools or writes[0].task_path.startswith(NOT_OWN_PATHS):
                continue
            node = pulled_node(writes[0])
            route = trigger_writes(head, writes, node)
            yield ToolStep(
                graph=graph,
                node=node,
                tools=frozenset(message.name for message in tools if message.name),
                route=route,
                started=started_nodes(head, route),
            )


def _may_hold_result(write: WriteRow, channel: str) -> bool:
    return write.channel == channel and _RESULT.search(write.blob) is not None


def pulled_nodes(ancestors: Sequence[HeadRows]) -> frozenset[str]:
    """The nodes whose runs the rows before a head show, as far as their paths say it."""
    found = (pulled_node(write) for ancestor in ancestors for write in ancestor.writes)
    return frozenset(node for node in found if node is not None)


def trigger_writes(head: Head, writes: Iterable[WriteRow], node: str | None) -> dict[str, Value]:
    """The trigger channels among one task's writes, with the values written.

    Rows of LangGraph 0.2 do not always say which node wrote them. There a channel named as a node
    that another node has read is the one that a node writes to say that it has run.
    """
    return {
        write.channel: (write.type, write.blob)
        for write in writes
        if write.idx >= 0
        and is_trigger(write.channel, head.layout, node or _named_as_node(head, write.channel))
    }


def _named_as_node(head: Head, channel: str) -> str | None:
    """The channel's name where it is a node's too, and starts another node."""
    seen = head.row.checkpoint.get("versions_seen")
    known = isinstance(seen, Mapping) and channel in seen
    return channel if known and node_started_by(channel, head.row.checkpoint) else None


def learn_route(
    head: Head,
    tools: frozenset[str],
    node: str | None,
    history: Sequence[ToolStep],
    fleet: Callable[[], Sequence[ToolStep]],
) -> Route | None:
    """Where this thread's, else other threads' tool results went on.

    Args:
        head: The head whose step is being mended.
        tools: The names of the tools whose calls have no result.
        node: The pending node that runs them; None for scheduled Sends.
        history: The thread's own tool steps, nearest first.
        fleet: Gives those of other threads; asked only where this one has none.

    Returns:
        The route, or None where nothing is known or what is known disagrees.
    """
    known = [step for step in history if node is None or step.node in (node, None)]
    if known:
        return _agreed(head, known, tools, "history")
    graph = graph_of(head)
    alike = [
        step
        for step in fleet()
        if graph.may_be(step.graph) and (node is None or step.node in (node, None))
    ]
    return _agreed(head, alike, tools, "fleet") if alike else None


def _agreed(
    head: Head, steps: Sequence[ToolStep], tools: frozenset[str], source: RouteSource
) -> Route | None:
    """The route that all steps of the same tools took; where none is theirs, that all took."""
    same = [step for step in steps if step.tools & tools]
    chosen = same or steps
    first = chosen[0]
    if any(set(step.route) != set(first.route) for step in chosen):
        return None
    return Route(first.route, started_nodes(head, first.route) or first.started, source)


def by_task(writes: Iterable[WriteRow]) -> list[list[WriteRow]]:
    """Writes grouped by the task that made them, each group in order."""
    ordered = sorted(writes, key=lambda write: (write.task_id, write.idx))
    return [list(group) for _, group in groupby(ordered, key=lambda write: write.task_id)]


def pulled_node(write: WriteRow) -> str | None:
    """The node that a pulled task's write says it is from; None for a Send's, and in old rows."""
    path = write.task_path
    return path.removeprefix(PULL_PATH) if path.startswith(PULL_PATH) else None


def readable_messages(writes: Iterable[WriteRow], channel: str) -> list[Message]:
    """The messages written to a channel, as far as they can be read."""
    messages: list[Message] = []
    for write in writes:
        if write.channel == channel and write.idx >= 0 and write.problem is None:
            try:
                messages.extend(read_messages(write.type, write.blob))
            except Unreadable:
                continue
    return messages


def started_nodes(head: Head, route: Iterable[str]) -> tuple[str, ...]:
    """The nodes that trigger channels start, as far as this thread's rows say it."""
    nodes = (node_started_by(channel, head.row.checkpoint) for channel in route)
    return tuple(dict.fromkeys(node for node in nodes if node is not None))
