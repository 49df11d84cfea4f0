"""A warmed process in which programs die cheaply.

Starting Python and importing LangChain takes seconds, so one process imports all of it and then
forks a child for each program; `os._exit` ends the child alone. Only one thread runs in the
process that forks.
"""

import importlib
import json
import os
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


class Nursery:
    """The handle that a test holds."""

    def __init__(self, programs: str = "tests.acceptance.programs") -> None:
        """Start the process; it imports the module with the programs."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.acceptance.nursery", programs],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, program: str, *arguments: Any) -> int:
        """Run a program of the module in a process of its own, to its end.

        Args:
            program: Its name.
            arguments: What JSON can carry.

        Returns:
            Its exit code.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([program, *arguments]) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        self._process.communicate(timeout=10)


def serve(module: str) -> None:
    """Fork a child for each line of stdin, and say its exit code."""
    # Whatever a program prints must not stand between the exit codes.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    programs = importlib.import_module(module)
    for line in sys.stdin:
        program, *arguments = json.loads(line)
        child = os.fork()
        if not child:
            try:
                getattr(programs, program)(*arguments)
                os._exit(0)
            finally:
                # Here only with an exception: a child must never come back to the loop.
                traceback.print_exc()
                os._exit(1)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), file=answers, flush=True)


if __name__ == "__main__":
    serve(sys.argv[1])
