"""What the judges ask of the service."""

from repair_service.repair.diagnosis import Diagnosis
from repair_service.repair.verdict import Policy
from repair_service.store.gateway import Store
from repair_service.sweep.run import Sweep
from repair_service.sweep.selection import Selection
from tests.conftest import Database

NOW = Policy(min_idle=0)
"""The threads of the tests are judged at once."""

SWITCHED = Policy(min_idle=0, allow=frozenset({"duplicate_result", "orphan_result"}))
"""With the switches that make duplicates and orphans repairable."""


def audit(database: Database, policy: Policy = NOW, *threads: str) -> list[Diagnosis]:
    """Judge every head that is not healthy."""
    with Store.connect(database.url, schema=database.schema) as store:
        return list(Sweep(store, policy, Selection(threads=threads)).audit())


def sweep(database: Database, policy: Policy = NOW, *threads: str) -> list[Diagnosis]:
    """Repair every head that can be."""
    with Store.connect(database.url, schema=database.schema) as store:
        return list(Sweep(store, policy, Selection(threads=threads)).repair())
