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
from repair_service.demo.installations import activation_of_environment
from repair_service.errors import RepairServiceError

PATIENCE = 60
# A test run in the background of a shell inherits that SIGINT is ignored, and so would the demo.
DEMO = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from repair_service.demo.run import run_demo
sys.exit(run_demo({keep}))
"""


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


def test_every_thread_goes_on_and_a_damaged_one_is_kept_until_a_signal(temporary: Path) -> None:
    with started(keep=True) as process:
        told = lines_until(process, "Press Ctrl-C")
        (url,) = [line.split("'")[1] for line in told if "export DATABASE_URL='" in line]
        with psycopg.connect(url) as connection:
            left = connection.execute("SELECT 1 FROM checkpoints WHERE thread_id = 'yours'")
            assert left.fetchone() is not None
        # The other way out that it offers; Ctrl-C ends it likewise.
        assert f"(or: kill {process.pid})" in told[-1]
        process.send_signal(signal.SIGTERM)
        last, complaints = process.communicate(timeout=PATIENCE)

    assert (process.returncode, complaints) == (0, "")
    assert last == "\nStopped; nothing is left behind.\n"
    assert list(temporary.iterdir()) == []
    text = "\n".join(told)
    assert "\x1b" not in text
    # The server's address alone may be longer: it is there to be copied.
    assert max(len(line) for line in told if url not in line) <= 80
    assert "Error code: 400" in text
    assert "Found: 6 damaged threads, and 1 that waits for a person." in text
    assert "Written: 6 checkpoints, one a damaged thread." in text
    for command in ("doctor", "audit", "sweep"):
        assert f"repair-service {command}" in text


@pytest.mark.parametrize(
    ("act", "number", "code"),
    [
        pytest.param("1.", signal.SIGTERM, 143, id="SIGTERM while the agents run"),
        pytest.param("1.", signal.SIGINT, 130, id="Ctrl-C while the agents run"),
        pytest.param("3.", signal.SIGINT, 130, id="Ctrl-C during the audit"),
    ],
)
def test_a_signal_ends_it_and_nothing_is_left(
    act: str, number: signal.Signals, code: int, temporary: Path
) -> None:
    with started() as process:
        lines_until(process, act)
        process.send_signal(number)
        _, complaints = process.communicate(timeout=PATIENCE)

    assert process.returncode == code
    assert complaints == "\nStopped; nothing is left behind.\n"
    assert list(temporary.iterdir()) == []


def test_missing_packages_are_named_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "find_spec", lambda name: None)
    with pytest.raises(RepairServiceError, match=r"pip install '\.\[demo\]'"):
        run.run_demo()


def test_the_way_to_the_command_is_shown_where_a_new_shell_does_not_find_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "base_prefix", "/usr")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv"))
    assert activation_of_environment() == ". .venv/bin/activate"
    monkeypatch.setattr(sys, "prefix", "/opt/an environment")
    assert activation_of_environment() == ". '/opt/an environment/bin/activate'"
    monkeypatch.setattr(sys, "prefix", "/usr")
    assert activation_of_environment() is None
