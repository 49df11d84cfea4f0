"""A virtual environment for each LangGraph release, with the saver that goes with it."""

import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SHARED = ("psycopg[binary]", "psycopg-pool")


@dataclass(frozen=True, slots=True)
class Release:
    """One row of the matrix.

    Attributes:
        name: The release series.
        packages: What pip installs, beside `SHARED`.
    """

    name: str
    packages: tuple[str, ...]


RELEASES: Sequence[Release] = (
    Release(
        "0.2",
        ("langgraph==0.2.76", "langgraph-checkpoint-postgres==2.0.15", "langchain-core<0.4"),
    ),
    Release(
        "0.3",
        (
            "langgraph==0.3.34",
            "langgraph-prebuilt<0.2",
            "langgraph-checkpoint-postgres==2.0.19",
            "langchain-core<0.4",
        ),
    ),
    Release(
        "0.4",
        (
            "langgraph==0.4.10",
            # Later ones import what LangGraph 0.6 brought, and do not say so.
            "langgraph-prebuilt<0.3",
            "langgraph-checkpoint-postgres==2.0.21",
            "langchain-core<0.4",
        ),
    ),
    Release(
        "0.6",
        ("langgraph==0.6.11", "langgraph-checkpoint-postgres==2.0.25", "langchain-core<0.4"),
    ),
    Release(
        "1.0",
        (
            "langgraph==1.0.10",
            "langgraph-prebuilt<1.0.9",
            "langgraph-checkpoint<4.1",
            "langgraph-checkpoint-postgres<3.1",
            "langchain<1.1",
        ),
    ),
    Release("current", ("langgraph", "langgraph-checkpoint-postgres", "langchain")),
)

JS_PACKAGES = (
    "@langchain/core@1.4.0",
    "@langchain/langgraph@1.7.3",
    "@langchain/langgraph-checkpoint-postgres@1.0.5",
    "langchain@1.5.14",
    "zod@4.6.7",
)


class Unavailable(Exception):
    """The environment of a row cannot be made; the message says why."""


def make(release: Release, cache: Path, constraints: Path) -> Path:
    """The interpreter of a release's environment, which is made where it is not there yet.

    Args:
        release: The release.
        cache: The directory of all environments.
        constraints: The project's pins; the current release is the pinned one.

    Raises:
        Unavailable: pip could not install it.
    """
    directory = cache / release.name
    stamp, python = directory / "installed", directory / "bin" / "python"
    wanted = "\n".join((*SHARED, *release.packages))
    if release.name == "current":
        wanted += "\n" + constraints.read_text(encoding="utf-8")
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return python
    venv.create(directory, clear=True, with_pip=True)
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if release.name == "current":
        command += ["--constraint", str(constraints)]
    _install([*command, *SHARED, *release.packages])
    stamp.write_text(wanted, encoding="utf-8")
    return python


def make_js(cache: Path) -> Path:
    """The directory with LangGraph.js and its Postgres saver, which is made where it is not there.

    Raises:
        Unavailable: There is no Node.js 20 or later, or npm could not install it.
    """
    try:
        said = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        raise Unavailable("Node.js is not there.") from None
    if int(said.stdout.strip().lstrip("v").split(".")[0]) < 20:
        raise Unavailable(f"Node.js 20 or later is needed, this is {said.stdout.strip()}.")
    directory = cache / "js"
    stamp, wanted = directory / "installed", "\n".join(JS_PACKAGES)
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "package.json").write_text('{"private": true, "type": "module"}\n')
        _install(["npm", "install", "--silent", "--no-audit", "--no-fund", *JS_PACKAGES], directory)
        stamp.write_text(wanted, encoding="utf-8")
    return directory


def versions(python: Path) -> Mapping[str, str]:
    """The installed versions of LangGraph and its saver, by package name."""
    program = (
        "from importlib.metadata import version\n"
        "for name in ('langgraph', 'langgraph-checkpoint-postgres'): print(name, version(name))"
    )
    said = subprocess.run([python, "-c", program], capture_output=True, text=True, check=True)
    return dict(line.split() for line in said.stdout.splitlines())


def _install(command: Sequence[str], directory: Path | None = None) -> None:
    print(f"installing: {' '.join(command[-8:])}", file=sys.stderr)
    try:
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    except OSError as error:
        raise Unavailable(f"{command[0]} cannot be run: {error.strerror}.") from error
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise Unavailable(f"The installation failed: {lines[-1] if lines else done.returncode}")
