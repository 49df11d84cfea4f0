"""What becomes of the tasks that are pending behind an unanswered call.

A step is taken up whole or not at all: what finished tasks wrote is applied, what did not finish is
given up. So every unfinished task must be one that answers the calls, and every write of a finished
one must be of a kind whose merge is known.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from repair_service.checkpoint.compose import keeps_tasks
from repair_service.checkpoint.head import Head, Task
from repair_service.checkpoint.identifiers import NULL_TASK
from repair_service.checkpoint.tasks import is_trigger
from repair_service.repair.route import (
    NOT_OWN_PATHS,
    Route,
    ToolStep,
    Value,
    readable_messages,
    started_nodes,
    trigger_writes,
)
from repair_service.repair.salvage import BOOKKEEPING, CALLED, written_messages

DEFAULT_TOOL_NODE = "tools"
"""The name that ToolNode, create_react_agent and create_agent give the node."""

INPUT_NODE = "__start__"

ERROR_HANDLER = "__error_source_node__"
"""Written where a node's own error handler takes over (langgraph/pregel/_runner.py)."""

HOOKS = frozenset({"pre_model_hook", "post_model_hook"})
HOOK_ENDS = (".before_agent", ".before_model", ".after_model", ".after_agent")
"""What runs around a model and runs no tools (langgraph/prebuilt/chat_agent_executor.py,
langchain/agents/factory.py)."""


@dataclass(frozen=True, slots=True)
class Step:
    """The pending step, judged.

    Attributes:
        consumed: Whether the patch takes it up; otherwise its tasks stay pending.
        obstacle: Why no default may touch it; None where the step can be mended.
        node: The pulled node that runs the tools; None for scheduled Sends.
        route: The trigger channels that finished tasks which run tools wrote, with their values;
            None where no such task has finished.
        beside: The trigger channels that other finished tasks wrote: a branch of the graph beside
            the tools, which goes on wherever the tools do.
        touched: The delta channels that finished siblings wrote.
    """

    consumed: bool
    obstacle: str | None = None
    node: str | None = None
    route: Mapping[str, Value] | None = None
    beside: Mapping[str, Value] = field(default_factory=dict)
    touched: frozenset[str] = frozenset()

    def sibling_route(self, head: Head) -> Route | None:
        """The route of the finished siblings; None where none has finished."""
        if self.route is None:
            return None
        return Route(self.route, started_nodes(head, self.route), "sibling")

    def with_beside(self, head: Head, route: Route) -> Route | None:
        """A route of the tools and that of the branches beside them; None where the two meet."""
        if not self.beside:
            return route
        if any(self.beside.get(name, value) != value for name, value in route.channels.items()):
            return None
        nodes = dict.fromkeys((*route.nodes, *started_nodes(head, self.beside)))
        return Route({**self.beside, **route.channels}, tuple(nodes), route.source)


def judge_step(
    head: Head,
    called: Mapping[str, frozenset[str]],
    history: Sequence[ToolStep],
    ran: frozenset[str],
    tool_nodes: Callable[[], frozenset[str]],
) -> Step:
    """Decide about the tasks pending behind AI messages whose calls are open.

    Args:
        head: The head.
        called: By transcript channel, the ids of the calls of its last AI message where some of
            them are open; empty for a list in which none is.
        history: The tool steps that the thread went through before.
        ran: The nodes whose earlier runs the thread's rows show.
        tool_nodes: Gives the nodes that run tools by the operator's or other threads' word; asked
            only where this thread leaves it open.

    Raises:
        Unreadable: A finished task's write cannot be read.
    """
    tasks = head.tasks
    if any(task.node == INPUT_NODE for task in tasks):
        return Step(consumed=False, obstacle=lost_by_keeping(head))
    running = {step.node for step in history if step.node} | {DEFAULT_TOOL_NODE}
    reading = {node for step in history for node in step.started} - running
    unfinished = [task for task in tasks if not task.finished and task.node is not None]
    if unfinished and all(task.node in reading and task.kind == "pull" for task in unfinished):
        return Step(consumed=False, obstacle=lost_by_keeping(head))
    if any(task.kind == "pull" and task.node not in running for task in tasks):
        running |= tool_nodes()
    calls = frozenset().union(*called.values())
    obstacle = _unplaced_obstacle(head, called) or _unfinished_obstacle(
        unfinished, calls, running, ran
    )
    for task in tasks:
        obstacle = obstacle or _writes_obstacle(head, task, called)
    obstacle = obstacle or stray_obstacle(head, called)
    if obstacle:
        return Step(consumed=True, obstacle=obstacle)
    finished = [task for task in tasks if task.finished]
    siblings = [task for task in finished if _runs_tools(task, called.keys(), calls, running)]
    if not siblings and not unfinished:
        names = ", ".join(repr(task.node) for task in finished)
        obstacle = (
            f"all that was pending has finished ({names}) and none of it answers the calls; "
            "nothing died in a tool, so invoke(None) goes on with it"
        )
    return Step(
        consumed=True,
        obstacle=obstacle,
        node=_pulled_node(siblings or unfinished),
        route=_written_triggers(head, siblings) if siblings else None,
        beside=_written_triggers(head, [task for task in finished if task not in siblings]),
        touched=frozenset(
            write.channel
            for task in finished
            for write in task.writes
            if write.channel in head.delta_channels and write.channel not in called
        ),
    )


def _runs_tools(
    task: Task, channels: Iterable[str], calls: frozenset[str], running: set[str]
) -> bool:
    """Whether a finished task is one of those that answer the calls, and not one beside them."""
    if task.kind == "push":
        return bool(set(task.call_ids) & calls)
    if task.node in running:
        return True
    written = (message for name in channels for message in written_messages(task.writes, name))
    return any(message.kind == "tool" and message.answers in calls for message in written)


def _written_triggers(head: Head, tasks: Sequence[Task]) -> dict[str, Value]:
    """The trigger channels that tasks wrote, with their values."""
    route: dict[str, Value] = {}
    for task in tasks:
        route |= trigger_writes(head, task.writes, task.node)
    return route


def judge_rest(head: Head, called: Mapping[str, frozenset[str]]) -> Step:
    """Decide about a head whose calls, if any are open in its last message, no task is to answer.

    Its tasks stay pending, and the calls are answered where they stand.
    """
    obstacle = lost_by_keeping(head)
    if not obstacle and any(called.values()):
        obstacle = _unknown_obstacle(head) or stray_obstacle(head, called)
    return Step(consumed=False, obstacle=obstacle)


def _unknown_obstacle(head: Head) -> str | None:
    """Why nobody knows whether a node is pending: no rows show who reads a node's own channel."""
    unknown = sorted(name for task in head.tasks if task.node is None for name in task.triggers)
    if not unknown:
        return None
    return (
        f"the rows do not tell whether a node is pending behind {unknown[0]!r}; if one is, "
        "invoke(None) runs it, and if none is, a result for each call by update_state goes on"
    )


def _pulled_node(tasks: Sequence[Task]) -> str | None:
    return next((task.node for task in tasks if task.kind == "pull" and task.node), None)


def lost_by_keeping(head: Head) -> str | None:
    """What a patch that keeps the pending tasks would lose, as a reason; None where it is nothing.

    Pending writes belong to the checkpoint that they were written for, so a new one drops them. An
    input that was taken is still in its channel, and is taken again.
    """
    if not keeps_tasks(head):
        return "scheduled Sends are pending, and in this layout a new checkpoint would drop them"
    for task in head.tasks:
        where = f"the node {task.node!r}" if task.node else "a pending task"
        if task.finished and task.node != INPUT_NODE:
            return f"{where} has finished, and a new checkpoint would drop what it wrote"
        if task.answered:
            return f"{where} was answered by a person, and a new checkpoint would drop the answer"
    if any(write.channel == CALLED for write in head.stray_writes):
        return (
            "a task that a pending node called has finished, and a new checkpoint would drop its "
            "result, so that it would run again; going on with invoke(None) takes it up"
        )
    return None


def _unfinished_obstacle(
    unfinished: Sequence[Task], calls: frozenset[str], running: set[str], ran: frozenset[str]
) -> str | None:
    """Why giving up the unfinished tasks would lose work that is not a tool call's."""
    strangers = [
        task
        for task in unfinished
        if not (set(task.call_ids) & calls if task.kind == "push" else task.node in running)
    ]
    for task in strangers:
        if task.kind == "push":
            return f"a Send to {task.node!r} that carries none of the calls is pending beside them"
        if task.answered:
            return (
                f"the node {task.node!r} was answered by a person and nothing shows that it runs "
                "tools; going on with invoke(None) takes the answer up"
            )
        if task.node in ran or _is_hook(task.node):
            return (
                f"the node {task.node!r} is pending between the calls and their tools, and would "
                "be given up; nothing died in a tool, so invoke(None) goes on with it"
            )
    if strangers and len(unfinished) > 1:
        return f"the node {strangers[0].node!r} is pending beside the calls, and would be given up"
    if strangers:
        node = strangers[0].node
        return f"nothing shows that the node {node!r} runs tools; --tool-node {node} says so"
    return None


def _unplaced_obstacle(head: Head, called: Mapping[str, frozenset[str]]) -> str | None:
    """Why it is not known which calls the pending tasks answer, where lists have different ones.

    A Send says which call it is for; a node that is pending reads one list, and the rows do not say
    which.
    """
    lists = sorted(name for name, calls in called.items() if calls)
    if len({called[name] for name in lists}) < 2:
        return None
    carried = {call for task in head.tasks for call in task.call_ids}
    if all(called[name] <= carried for name in lists):
        return None
    return (
        f"the lists {lists[0]!r} and {lists[1]!r} have calls of their own without a result, and "
        "the rows do not tell which of them the pending tasks answer"
    )


def _is_hook(node: str | None) -> bool:
    """Whether a node is one that create_agent or create_react_agent puts around its model."""
    return node in HOOKS or (node or "").endswith(HOOK_ENDS)


def _writes_obstacle(head: Head, task: Task, called: Mapping[str, frozenset[str]]) -> str | None:
    """Why the writes of a task cannot be taken up; None where they can or there are none."""
    if task.writes and not task.proven:
        return f"pending writes at {task.node!r} cannot be shown to be that task's own"
    if any(write.channel == ERROR_HANDLER for write in task.writes):
        return f"an error handler is about to run for {task.node!r}, and would be given up"
    if not task.finished:
        return None
    for write in task.writes:
        if write.problem is not None:
            return f"a pending write of {task.node!r} cannot be read: {write.problem}"
        known = (
            write.idx < 0
            or write.channel in called
            or write.channel in head.delta_channels
            or write.channel in BOOKKEEPING
            or is_trigger(write.channel, head.layout, task.node)
        )
        if not known:
            return (
                f"a finished call wrote the channel {write.channel!r}, "
                "whose merge rule the rows do not tell"
            )
    for channel, calls in called.items():
        for message in written_messages(task.writes, channel):
            if message.kind != "tool" or message.answers not in calls:
                return f"a finished call wrote more than its result to the channel {channel!r}"
    return None


def stray_obstacle(head: Head, called: Mapping[str, frozenset[str]]) -> str | None:
    """Why a result that no pending task wrote stands in the way of a placeholder for its call.

    It cannot be shown to be the call's own, nor that there is none.
    """
    calls = frozenset().union(*called.values())
    own = [
        write
        for write in head.stray_writes
        if write.task_id != NULL_TASK and not write.task_path.startswith(NOT_OWN_PATHS)
    ]
    taken = [write for task in head.tasks if task.finished for write in task.writes]
    for channel in called:
        answered = {message.answers for message in readable_messages(taken, channel)}
        for message in readable_messages(own, channel):
            if message.kind == "tool" and message.answers in calls - answered:
                return (
                    f"a result of the call {message.answers!r} is among the pending writes and "
                    "cannot be shown to be its task's own"
                )
    return None
