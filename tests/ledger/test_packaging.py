"""A checkout and an installed wheel both find the migrations; the records cost nothing."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import repair_service
from repair_service.errors import LedgerError
from repair_service.ledger import migrate
from tests.conftest import Database

PACKAGE = Path(repair_service.__file__).parent
CHECKOUT = PACKAGE.parent

UPGRADE = """
import sys
from repair_service.ledger.migrate import migrations_directory, upgrade
upgrade(sys.argv[1])
print(migrations_directory())
"""

BUILD = """
import sys
from hatchling.build import build_wheel
print(build_wheel(sys.argv[1]))
"""

LIGHT = """
import sys
import repair_service.ledger.pattern
import repair_service.ledger.records.finding
import repair_service.ledger.records.rails
import repair_service.ledger.records.repair
import repair_service.ledger.records.run
print(sorted({"sqlalchemy", "alembic", "psycopg"} & set(sys.modules)))
"""


def run(code: str, *arguments: str, at: Path, path: Path) -> str:
    """What a fresh interpreter prints that finds the package only at `path`."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *arguments],
        cwd=at,
        env={"PYTHONPATH": str(path), "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_a_checkout_finds_its_migrations(bare: Database, tmp_path: Path) -> None:
    if not (CHECKOUT / "migrations").is_dir():
        pytest.skip("the package is installed, not a checkout")

    said = run(UPGRADE, bare.url, at=tmp_path, path=CHECKOUT)

    assert said == str(CHECKOUT / "migrations")
    assert migrate.check(bare.url).ready


def test_a_wheel_has_the_migrations_and_finds_them(bare: Database, tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    name = run(BUILD, str(tmp_path), at=CHECKOUT, path=CHECKOUT)
    site = tmp_path / "site"
    with zipfile.ZipFile(tmp_path / name) as wheel:
        wheel.extractall(site)

    said = run(UPGRADE, bare.url, at=tmp_path, path=site)

    assert said == str(site / "repair_service" / "migrations")
    assert migrate.check(bare.url).ready
    made = {path.name for path in (site / "repair_service" / "migrations").iterdir()}
    assert made == {"env.py", "script.py.mako", "versions"}


def test_migrations_inside_the_package_are_found_first(bare: Database, tmp_path: Path) -> None:
    site = tmp_path / "site"
    shutil.copytree(PACKAGE, site / "repair_service", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(migrate.migrations_directory(), site / "repair_service" / "migrations")
    (site / "migrations").mkdir()
    (site / "migrations" / "env.py").touch()

    said = run(UPGRADE, bare.url, at=tmp_path, path=site)

    assert said == str(site / "repair_service" / "migrations")
    assert migrate.check(bare.url).ready


def test_an_installation_without_migrations_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repair_service, "__file__", str(tmp_path / "package" / "__init__.py"))

    with pytest.raises(LedgerError, match="Install repair-service again"):
        migrate.migrations_directory()


def test_records_need_no_database_library(tmp_path: Path) -> None:
    assert run(LIGHT, at=tmp_path, path=CHECKOUT) == "[]"
