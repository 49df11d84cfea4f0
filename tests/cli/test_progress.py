"""What stderr says while a run goes on: lines in a log, a bar on a terminal."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
from collections import Counter
from collections.abc import Callable

import pytest

from repair_service.cli.progress import Progress
from repair_service.repair.verdict import Verdict
from repair_service.sweep.totals import Totals
from tests.cli.conftest import Command
from tests.conftest import Corpus, Database

COLUMNS = 80


class Clock:
    """Time that the test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_line_comes_also_while_nothing_moves(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, told = Clock(), threading.Event()
    totals = Totals(heads=600, verdicts=Counter({Verdict.MANUAL: 2}), share=0.25)
    with Progress("audit", clock=clock, every=0.001) as progress:
        clock.now = 60.0
        progress.update(totals)
        tell = progress._print
        monkeypatch.setattr(progress, "_print", lambda line: (tell(line), told.set()))
        assert told.wait(30)
    err = capsys.readouterr().err
    assert "audit: ~25%, 600 heads, 10/s, ~3m left, 2 manual\n" in err


def test_nothing_is_said_of_a_short_run(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("audit") as progress:
        progress.update(Totals(heads=5))
    said = capsys.readouterr()
    assert said.out == said.err == ""


def test_a_wait_is_said_when_it_begins_each_half_minute_and_when_it_ends(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock, totals = Clock(), Totals()
    with Progress("sweep", clock=clock) as progress:
        for second in range(70):
            clock.now = float(second)
            busy = 5 <= second < 65
            totals.waiting_for = "212 active sessions, --max-active is 100" if busy else None
            progress.update(totals)
    assert capsys.readouterr().err.splitlines() == [
        "Waiting: 212 active sessions, --max-active is 100.",
        "Waiting for 30s: 212 active sessions, --max-active is 100.",
        "Going on after 1m.",
    ]


def test_waits_that_come_and_go_do_not_fill_a_log(capsys: pytest.CaptureFixture[str]) -> None:
    clock, totals = Clock(), Totals()
    with Progress("sweep", clock=clock) as progress:
        for second in range(300):
            clock.now = float(second)
            totals.waiting_for = "6 active sessions, --max-active is 5" if second % 2 else None
            progress.update(totals)
    assert 10 <= len(capsys.readouterr().err.splitlines()) <= 22


def test_a_bar_fits_into_a_terminal_and_none_of_it_into_the_report(damaged: Database) -> None:
    """A sweep that is slowed down at a terminal of 80 columns, its report in a pipe."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "repair_service", "audit", "--rate", "20"),
            *("--format", "json", "--min-idle", "0", "--schema", damaged.schema),
        ],
        env=os.environ | {"DATABASE_URL": damaged.url, "TERM": "xterm-256color"},
        stdout=subprocess.PIPE,
        stderr=theirs,
        stdin=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 4096):
            shown += piece
    except OSError:
        pass  # nobody at the other end any more
    assert process.stdout is not None
    out = process.stdout.read()
    process.stdout.close()
    assert process.wait() == 2
    os.close(ours)
    assert out.startswith(b"{")
    assert b"\x1b" not in out
    text = shown.decode()
    assert "audit" in text
    assert "(--rate 20)" in text
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    drawn = [line for line in re.split(r"[\r\n]+", plain) if line.startswith("audit")]
    assert max(map(len, drawn)) <= COLUMNS
    # It is a line that is written over, and gone at the end.
    assert plain.count("\n") < len(drawn)
    assert text.endswith("\x1b[2K")


def test_progress_never_gets_into_a_file(command: Command, damaged: Database) -> None:
    ran = command(
        *("audit", "--database-url", damaged.url, "--schema", damaged.schema),
        *("--output", "report.txt", "--rate", "100"),
    )
    assert ran.code == 2
    assert ran.out == ""
    assert "~" not in ran.err


@pytest.fixture
def damaged(load_corpus: Callable[[str], Corpus]) -> Database:
    return load_corpus("python-1.2.24").database
