"""What other threads of the store show, for a thread that shows too little itself."""

from collections.abc import Sequence
from typing import Protocol

from repair_service.repair.breakpoints import NodeRun
from repair_service.repair.route import ToolStep


class Fleet(Protocol):
    """A sample of other threads."""

    def tool_steps(self) -> Sequence[ToolStep]:
        """The tasks that returned tool results, and where they went."""

    def node_runs(self) -> Sequence[NodeRun]:
        """The times nodes ran, each thread's latest first."""


class NoFleet:
    """No other thread: where one thread must speak for itself."""

    def tool_steps(self) -> Sequence[ToolStep]:
        """Nothing."""
        return ()

    def node_runs(self) -> Sequence[NodeRun]:
        """Nothing."""
        return ()
