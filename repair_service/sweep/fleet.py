"""The tool steps of other threads: asked once a run, and only when a thread knows no route."""

from repair_service.checkpoint.tasks import read_head
from repair_service.checkpoint.transcripts import read_transcripts
from repair_service.errors import Unreadable
from repair_service.repair.route import ToolStep, tool_steps
from repair_service.store.gateway import Store

SAMPLE = 200
"""Threads looked at: enough for a few of every graph, and under a second to read."""

SAMPLE_DEPTH = 40
"""Checkpoints of a thread looked at: a few turns, each of which holds a tool step."""


class FleetSample:
    """The tool steps of a sample of the store's threads, read when first asked for."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._steps: tuple[ToolStep, ...] | None = None

    def __call__(self) -> tuple[ToolStep, ...]:
        """The steps of the sample."""
        if self._steps is None:
            self._steps = self._read()
        return self._steps

    def _read(self) -> tuple[ToolStep, ...]:
        steps: list[ToolStep] = []
        threads = self._store.recent_threads(SAMPLE)
        for thread in self._store.threads(threads, depth=SAMPLE_DEPTH).values():
            for namespace, rows in thread.heads.items():
                ancestors = thread.ancestors.get(namespace, ())
                try:
                    head = read_head(rows)
                    pruned = namespace in thread.pruned
                    for channel in read_transcripts(head, ancestors, pruned):
                        steps.extend(tool_steps(head, ancestors, channel))
                except Unreadable:
                    continue
        return tuple(steps)
