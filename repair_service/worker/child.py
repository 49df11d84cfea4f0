"""A run in a process of its own, as the command line would start it.

So a run has the one machinery (ledger, report, bounds, exit codes), its memory goes with it, and it
can be stopped between two heads. It is told its settings by its environment, which no other account
can read. Its standard input is a pipe that nobody writes to: where the worker dies, however it
dies, the pipe ends, and the run stops itself.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

VARIABLE = "REPAIR_WORKER_RUN"
"""What a run is told by its worker; nobody else sets it."""

NOT_PASSED_ON = ("REPAIR_STORES__", "REPAIR_SCHEDULES__", "REPAIR_WORKER_")
"""Prefixes of variables that are the worker's own, the secrets of other stores among them."""


@dataclass(frozen=True, slots=True)
class ToldRun:
    """What a run is told by its worker.

    Attributes:
        run_id: Its id in the ledger.
        store: The store's name.
        schedule: The schedule's name; None where a person asked.
        stop_seconds: How long it may go on once its worker has died.
        settings: Its settings, before those of environment and file.
    """

    run_id: str
    store: str
    schedule: str | None
    stop_seconds: float
    settings: Mapping[str, Any] = field(repr=False)


def told_run(environment: Mapping[str, str]) -> ToldRun | None:
    """What this process was told by a worker; None where it is none of its runs."""
    text = environment.get(VARIABLE)
    return ToldRun(**json.loads(text)) if text else None


class Child:
    """One run that goes on."""

    def __init__(
        self,
        arguments: Sequence[str],
        told: ToldRun,
        variables: Mapping[str, str],
        ended: Callable[[], None],
    ) -> None:
        """Start it.

        Args:
            arguments: The verb and its arguments; no secret, for every account can read them.
            told: What it is told.
            variables: Further variables.
            ended: Called once it has ended, in another thread.

        Raises:
            OSError: The system starts no more processes.
        """
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(NOT_PASSED_ON)
        }
        environment |= variables
        environment[VARIABLE] = json.dumps(asdict(told), default=str)
        self._process = subprocess.Popen(  # noqa: S603  # our own program
            [sys.executable, "-m", "repair_service", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env=environment,
            # Ctrl-C on the worker's terminal is for the worker, which stops its runs in its order.
            start_new_session=True,
        )
        self._ended = ended
        threading.Thread(target=self._wait, name=f"run {told.run_id}", daemon=True).start()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """How it ended, 128 and the signal's number where one killed it; None while it goes on."""
        code = self._process.returncode
        return code if code is None or code >= 0 else 128 - code

    def stop(self) -> None:
        """Let it end between two heads."""
        self._process.terminate()

    def kill(self) -> None:
        """End it now; an open transaction is undone by the server."""
        self._process.kill()

    def _wait(self) -> None:
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._ended()
