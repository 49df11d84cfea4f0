"""The example of the README is one that `serve` takes."""

import re
from pathlib import Path

import pytest

from repair_service.cli.worker_settings import load_worker

README = Path(__file__).parents[2] / "README.md"


@pytest.mark.skipif(not README.is_file(), reason="the source distribution's tests stand alone")
def test_the_example_of_the_readme_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = re.findall(r"^```toml\n(.*?)^```$", README.read_text(), re.DOTALL | re.MULTILINE)
    [example] = [block for block in blocks if "[schedules." in block]
    (tmp_path / "repair-service.toml").write_text(example)
    monkeypatch.setenv("DATABASE_URL", "postgresql://host/database")

    told = load_worker({"config": tmp_path / "repair-service.toml"})

    assert {each.name: each.verb for each in told.schedules} == {
        "often": "sweep",
        "weekly": "audit",
    }
