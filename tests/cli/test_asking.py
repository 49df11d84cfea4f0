"""What sweep does with an answer, at a real terminal."""

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from tests.cli.stores import rows_of
from tests.conftest import Corpus, Database

PATIENCE = 60
QUESTION = "Write? [y/N]:"


@dataclass
class Terminal:
    """A sweep of one thread at a terminal, and what the terminal shows of it."""

    process: "subprocess.Popen[bytes]"
    line: int
    shown: str = ""

    def read_until(self, text: str) -> None:
        while text not in self.shown:
            self.shown += os.read(self.line, 4096).decode()

    def type(self, text: str) -> None:
        os.write(self.line, text.encode())

    def end(self) -> int:
        """Wait for the end, and read all that is left; the exit code."""
        code = self.process.wait(PATIENCE)
        os.set_blocking(self.line, False)
        try:
            while piece := os.read(self.line, 4096):
                self.shown += piece.decode()
        except OSError:
            pass  # nothing more, or (Linux) nobody at the other end
        return code


@pytest.fixture
def store(load_corpus: Callable[[str], Corpus]) -> Database:
    return load_corpus("python-1.2.24").database


@pytest.fixture
def terminal(store: Database) -> Iterator[Terminal]:
    """Where a sweep has just asked."""
    address = ["--database-url", store.url, "--schema", store.schema]
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "repair_service", "sweep", "--thread", "agent_three", *address],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        asked = Terminal(process, ours)
        asked.read_until(QUESTION)
        yield asked
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def test_yes_writes(terminal: Terminal, store: Database) -> None:
    before = rows_of(store)
    terminal.type("y\n")
    assert terminal.end() == 0
    assert "repaired" in terminal.shown.rpartition(QUESTION)[2]
    assert len(rows_of(store)["checkpoints"]) == len(before["checkpoints"]) + 1


@pytest.mark.parametrize("answer", ["n\n", "\n", "\x04"], ids=["n", "Enter", "Ctrl-D"])
def test_anything_else_writes_nothing_and_says_so(
    terminal: Terminal, store: Database, answer: str
) -> None:
    before = rows_of(store)
    terminal.type(answer)
    assert terminal.end() == 2
    assert terminal.shown.endswith("\r\nNothing was written.\r\n")
    assert rows_of(store) == before


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_writes_nothing_and_says_so_in_a_line_of_its_own(
    terminal: Terminal, store: Database, number: signal.Signals, code: int
) -> None:
    before = rows_of(store)
    terminal.process.send_signal(number)
    assert terminal.end() == code
    assert terminal.shown.endswith("\r\nNothing was written.\r\n")
    assert rows_of(store) == before
