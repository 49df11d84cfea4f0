"""A sample of other threads: read once a run, and only when a thread shows too little itself."""

from repair_service.checkpoint.head import Head
from repair_service.checkpoint.rows import HeadRows
from repair_service.checkpoint.tasks import read_head
from repair_service.checkpoint.transcripts import read_transcripts
from repair_service.errors import Unreadable
from repair_service.repair.breakpoints import NodeRun, node_runs
from repair_service.repair.route import ToolStep, tool_steps
from repair_service.store.gateway import Store

SAMPLE = 200
"""Threads looked at: enough for a few of every graph, and under a second to read."""

SAMPLE_DEPTH = 40
"""Checkpoints of a thread looked at: a few turns, each of which holds a tool step."""


class FleetSample:
    """What a sample of the store's threads shows."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read_already = False
        self._steps: list[ToolStep] = []
        self._runs: list[NodeRun] = []

    def tool_steps(self) -> list[ToolStep]:
        """The tasks that returned tool results, and where they went."""
        self._read()
        return self._steps

    def node_runs(self) -> list[NodeRun]:
        """The times nodes ran, each thread's latest first."""
        self._read()
        return self._runs

    def _read(self) -> None:
        if self._read_already:
            return
        self._read_already = True
        threads = self._store.recent_threads(SAMPLE)
        for thread in self._store.threads(threads, depth=SAMPLE_DEPTH).values():
            for namespace, rows in thread.heads.items():
                ancestors = thread.ancestors.get(namespace, ())
                try:
                    head = read_head(rows)
                    self._learn(head, ancestors, pruned=namespace in thread.pruned)
                except Unreadable:
                    continue

    def _learn(self, head: Head, ancestors: tuple[HeadRows, ...], *, pruned: bool) -> None:
        self._runs.extend(node_runs(head, ancestors))
        for channel in read_transcripts(head, ancestors, pruned):
            self._steps.extend(tool_steps(head, ancestors, channel))
