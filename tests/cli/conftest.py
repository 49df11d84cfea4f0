"""The command run as an operator does: arguments in, exit code and both streams out."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from repair_service.cli.app import main


@dataclass(frozen=True, slots=True)
class Ran:
    """What one call of the command did."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads(self.out)
        return loaded

    @property
    def items(self) -> dict[str, dict[str, Any]]:
        """The items by thread; of the threads used here each has one."""
        return {item["thread_id"]: item for item in self.document["items"]}


Command = Callable[..., Ran]


@pytest.fixture
def command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Command:
    """Runs the command in an empty directory, with none of its variables set."""
    monkeypatch.chdir(tmp_path)
    for name in ("DATABASE_URL", "REPAIR_DATABASE_URL", "REPAIR_CONFIG", "REPAIR_DEBUG"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: str) -> Ran:
        capsys.readouterr()
        code = main(list(arguments))
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return Ran(code, said.out, said.err)

    return run
