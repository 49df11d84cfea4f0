"""The demo as its reader meets it: a process, its text, its exit code, and nothing left behind."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from repair_service.demo import run
from repair_service.errors import RepairServiceError

PATIENCE = 60
DEMO = "import sys; from repair_service.demo.run import run_demo; sys.exit(run_demo({keep}))"


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory for all that the demo keeps, open to the server's account."""
    # Not tmp_path: its name would be too long for a socket.
    with tempfile.TemporaryDirectory(prefix="demo-", dir="/tmp") as directory:
        Path(directory).chmod(0o755)
        monkeypatch.setenv("TMPDIR", directory)
        yield Path(directory)


@contextmanager
def started(keep: bool = False) -> "Iterator[subprocess.Popen[str]]":
    """The demo in a process of its own, its stdout as in a pipe."""
    process = subprocess.Popen(
        [sys.executable, "-c", DEMO.format(keep=keep)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def lines_until(process: "subprocess.Popen[str]", start: str) -> list[str]:
    """The lines of stdout up to the one that starts like this."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line.rstrip("\n"))
        if line.startswith(start):
            return lines
    raise AssertionError(f"No line starts with {start!r}: {lines}")


def test_every_thread_goes_on_and_the_text_fits_a_pipe(temporary: Path) -> None:
    with started() as process:
        told, complaints = process.communicate(timeout=PATIENCE)

    assert (process.returncode, complaints) == (0, "")
    assert "\x1b" not in told
    assert max(map(len, told.splitlines())) <= 80
    assert "Error code: 400" in told
    assert "Found: 6 damaged threads, and 1 that waits for a person." in told
    assert "Written: 6 checkpoints, one a damaged thread." in told
    for command in ("doctor", "audit", "sweep"):
        assert f"repair-service {command}" in told
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["Ctrl-C", "SIGTERM"]
)
@pytest.mark.parametrize("moment", ["1.", "3."])
def test_a_signal_ends_it_and_nothing_is_left(
    moment: str, number: signal.Signals, code: int, temporary: Path
) -> None:
    with started() as process:
        lines_until(process, moment)
        process.send_signal(number)
        _, complaints = process.communicate(timeout=PATIENCE)

    assert (process.returncode, complaints) == (code, "")
    assert list(temporary.iterdir()) == []


def test_keep_leaves_a_server_with_a_damaged_thread_until_ctrl_c(temporary: Path) -> None:
    with started(keep=True) as process:
        shown = lines_until(process, "Press Ctrl-C")
        (url,) = [line.split("'")[1] for line in shown if "export DATABASE_URL='" in line]
        with psycopg.connect(url) as connection:
            row = connection.execute(
                "SELECT count(*) FROM checkpoints WHERE thread_id = 'yours'"
            ).fetchone()
            assert row is not None
            assert row[0] > 0
        process.send_signal(signal.SIGINT)
        _, complaints = process.communicate(timeout=PATIENCE)

    assert (process.returncode, complaints) == (0, "")
    assert list(temporary.iterdir()) == []


def test_missing_packages_are_named_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "find_spec", lambda name: None)
    with pytest.raises(RepairServiceError, match=r"pip install 'repair-service\[demo\]'"):
        run.run_demo()
