"""One head as the diagnosis reads it: layout, channels, the tasks that are pending."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from repair_service.checkpoint.rows import CheckpointRow, HeadRows, WriteRow

Layout = Literal["python-1", "python-2", "python-3", "python-4", "js-3", "js-4"]


@dataclass(frozen=True, slots=True)
class Task:
    """One task that is pending at a head.

    Attributes:
        kind: `pull` for a node that a trigger channel starts, `push` for a scheduled Send.
        node: The node's name; None where layout 1 or 2 does not say which node a channel starts.
        triggers: For `pull`, the trigger channels that have a new value now.
        index: For `push`, the index into the scheduled Sends.
        call_ids: For `push`, the ids of the tool calls in the Send's argument (a tool call, a list
            of them, or a mapping with one under `tool_call`), empty when it carries none.
        ids: The task ids that the stored rows may know this task by: recomputed from where it
            stands (`identifiers`), one for each trigger list that is possible.
        writes: Its rows in `checkpoint_writes` of the head, found by id or by task_path.
        proven: Whether the id of those rows, or of its namespace, agrees with a recomputed id. True
            where there are no rows.
        finished: Whether it has channel writes (idx 0 and up), that is, it ran to its end.
        failed: Whether it has an `__error__` write.
        interrupted: Whether it has an `__interrupt__` write that nobody has answered.
        answered: Whether it has an `__interrupt__` write that somebody answered.
    """

    kind: Literal["pull", "push"]
    node: str | None
    triggers: tuple[str, ...] = ()
    index: int | None = None
    call_ids: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    writes: tuple[WriteRow, ...] = ()
    proven: bool = True
    finished: bool = False
    failed: bool = False
    interrupted: bool = False
    answered: bool = False


@dataclass(frozen=True, slots=True)
class Head:
    """The newest checkpoint of a thread and namespace, read.

    Attributes:
        rows: The rows it was read from.
        layout: How its values are laid out.
        step: `metadata.step`.
        timestamp: The time in its id, seconds since 1970; None when the id is no UUIDv6.
        versions: `channel_versions` as stored (text, or integers for LangGraph.js).
        valued: The channels that have a value now.
        tasks: The pending tasks.
        stray_writes: Rows of `checkpoint_writes` of the head that belong to no pending task: other
            tasks' leftovers, and the caller's under the null task id.
        delta_channels: Channels that are rebuilt from history (`counters_since_delta_snapshot`).
    """

    rows: HeadRows
    layout: Layout
    step: int
    timestamp: float | None
    versions: Mapping[str, str | int | float]
    valued: frozenset[str]
    tasks: tuple[Task, ...]
    stray_writes: tuple[WriteRow, ...]
    delta_channels: frozenset[str]

    @property
    def row(self) -> CheckpointRow:
        return self.rows.row
