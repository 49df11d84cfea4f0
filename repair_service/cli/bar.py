"""One line at the foot of a terminal, on stderr: a bar, and what is known beside it."""

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Column

WIDTH = 16
"""Columns of the bar: with it, the counts of a large store fit into 80."""


class Bar:
    """The line; it is there from `show` to `hide`."""

    def __init__(self) -> None:
        self._progress: Progress | None = None

    def show(self, verb: str, share: float | None, counts: Sequence[str]) -> None:
        """Show a state.

        Args:
            verb: The start of the line.
            share: How much is done, 0 to 1; None where nobody can say: then the bar only moves.
            counts: The rest of the line, cut off where it is too long.
        """
        total, done, said = None if share is None else 1.0, share or 0.0, ", ".join(counts)
        if self._progress is None:
            # What the report prints goes to stdout as it is, whatever is drawn here.
            self._progress = Progress(
                TextColumn("{task.description}"),
                BarColumn(WIDTH),
                TextColumn(
                    "{task.fields[counts]}",
                    markup=False,
                    table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1),
                ),
                console=Console(file=sys.stderr),
                transient=True,
                expand=True,
                redirect_stdout=False,
                redirect_stderr=False,
                refresh_per_second=5,
            )
            self._progress.add_task(verb, total=total, completed=done, counts=said)  # type: ignore[arg-type]  # a float is drawn too
            self._progress.start()
            return
        [task] = self._progress.task_ids
        self._progress.update(task, total=total, completed=done, counts=said)

    def hide(self) -> None:
        """Take the line away."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None
