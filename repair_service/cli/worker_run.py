"""A run that a worker started: its lines are logged, and it ends where the worker has died."""

import os
import signal
import sys
import threading
import time

from repair_service.cli.logs import log_stderr
from repair_service.worker.child import told_run

PIPE = 0
"""Standard input: a pipe to which the worker writes nothing, so that its end is the worker's."""


def become_run() -> None:
    """Log in JSON, with the run's ids in each line, and watch the worker."""
    told = told_run(os.environ)
    if told is None:
        return
    log_stderr(run_id=told.run_id, store=told.store, schedule=told.schedule)
    watcher = threading.Thread(
        target=_watch, args=(told.stop_seconds,), name="worker's end", daemon=True
    )
    watcher.start()


def _watch(seconds: float) -> None:
    """Wait for the pipe's end; then stop between two heads, or at once where that takes long."""
    while os.read(PIPE, 1):
        pass
    print("The worker has died; stopping.", file=sys.stderr)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(seconds)
    # What was open is undone by the server.
    os.kill(os.getpid(), signal.SIGKILL)
