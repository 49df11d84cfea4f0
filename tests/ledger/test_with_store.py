"""The patch and its row: in one database, both are there or neither is."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from repair_service.errors import LedgerError, RepairFailed
from repair_service.ledger import migrate
from repair_service.ledger.gateway import Ledger
from repair_service.ledger.records.finding import Finding
from repair_service.ledger.records.repair import BlobKey, NewRepair, RepairState
from repair_service.repair.diagnosis import Diagnosis
from repair_service.repair.verdict import Policy, Verdict
from repair_service.store.gateway import Store
from repair_service.sweep.run import Sweep
from repair_service.sweep.run_record import RunRecord
from repair_service.sweep.selection import Selection
from repair_service.sweep.write import write_patch
from tests.conftest import Corpus, Database
from tests.ledger.examples import run


@pytest.fixture
def damaged(load_corpus: Callable[[str], Corpus]) -> Database:
    database = load_corpus("python-1.2.24").database
    if database.schema != "public":
        pytest.skip("the ledger has one schema, so each test needs a database of its own")
    migrate.upgrade(database.url)
    return database


@pytest.fixture
def opened(damaged: Database) -> Iterator[tuple[Ledger, Store]]:
    with (
        Ledger(damaged.url) as ledger,
        Store.connect(damaged.url, schema=damaged.schema) as store,
    ):
        yield ledger, store


def found(store: Store) -> list[Diagnosis]:
    return list(Sweep(store, Policy(min_idle=0.0), Selection()).audit())


def append(
    store: Store,
    diagnosis: Diagnosis,
    ledger: Ledger,
    repair: NewRepair,
    wrong: str | None = None,
) -> None:
    patch = diagnosis.patch
    assert patch is not None

    def record(connection: "psycopg.Connection[Any]") -> None:
        ledger.repairs.record(connection, repair)

    store.append(
        patch.row,
        patch.blobs,
        head_id=patch.head_id,
        writes_digest=patch.writes_digest,
        also_heads=patch.above,
        check=lambda thread: wrong,
        also=record,
    )


def written(database: Database, checkpoint_id: str) -> int:
    with database.connect() as connection:
        row = connection.execute(
            "SELECT count(*) FROM checkpoints WHERE checkpoint_id = %s", (checkpoint_id,)
        ).fetchone()
    assert row is not None
    return int(str(row[0]))


def test_every_patch_of_real_threads_is_written_with_its_row(
    damaged: Database, opened: tuple[Ledger, Store]
) -> None:
    ledger, store = opened
    identity = ledger.identify(damaged.url, damaged.schema)
    run_id = ledger.runs.open(run(identity))
    diagnoses = found(store)
    repairable = [each for each in diagnoses if each.verdict is Verdict.REPAIRABLE]
    assert len(repairable) > 5

    for diagnosis in repairable:
        repair = NewRepair.of(diagnosis, run_id, identity.key)
        append(store, diagnosis, ledger, repair)
    ledger.findings.record(run_id, map(Finding.of, diagnoses))

    kept = list(ledger.repairs.what_to_undo(identity.key, run_id=run_id))
    assert {each.state for each in kept} == {RepairState.SETTLED}
    assert {(each.thread_id, each.checkpoint_ns) for each in kept} == {
        (each.thread_id, each.checkpoint_ns) for each in repairable
    }
    assert all(written(damaged, each.to_checkpoint_id) for each in kept)
    with damaged.connect() as connection:
        for each in kept:
            for blob in each.blobs:
                row = connection.execute(
                    "SELECT count(*) FROM checkpoint_blobs WHERE thread_id = %s"
                    " AND checkpoint_ns = %s AND channel = %s AND version = %s",
                    (each.thread_id, each.checkpoint_ns, blob.channel, blob.version),
                ).fetchone()
                assert row == (1,), BlobKey(blob.channel, blob.version)
    stored = {each.thread_id: each.diagnosis() for each in ledger.findings.all(run_id)}
    assert stored == {each.thread_id: replace(each, patch=None) for each in diagnoses}


def test_a_patch_that_is_rolled_back_has_no_row(
    damaged: Database, opened: tuple[Ledger, Store]
) -> None:
    ledger, store = opened
    identity = ledger.identify(damaged.url, damaged.schema)
    run_id = ledger.runs.open(run(identity))
    diagnosis = next(each for each in found(store) if each.patch)
    repair = NewRepair.of(diagnosis, run_id, identity.key)

    with pytest.raises(RepairFailed):
        append(store, diagnosis, ledger, repair, wrong="no")

    assert list(ledger.repairs.of_run(run_id)) == []
    assert written(damaged, repair.to_checkpoint_id) == 0


def test_a_row_that_is_refused_leaves_no_patch(
    damaged: Database, opened: tuple[Ledger, Store]
) -> None:
    ledger, store = opened
    diagnosis = next(each for each in found(store) if each.patch)
    no_such_run = run(ledger.identify(damaged.url, damaged.schema)).id
    repair = NewRepair.of(diagnosis, no_such_run, "here/public")

    with pytest.raises(LedgerError, match="23503"):
        append(store, diagnosis, ledger, repair)

    assert written(damaged, repair.to_checkpoint_id) == 0


def test_between_two_databases_a_patch_that_cannot_be_encrypted_leaves_no_open_intent(
    damaged: Database, opened: tuple[Ledger, Store]
) -> None:
    ledger, store = opened
    elsewhere = replace(ledger.identify(damaged.url, damaged.schema), shared=False)
    begun = run(elsewhere)
    ledger.runs.open(begun)
    diagnosis = next(each for each in found(store) if each.patch)
    assert diagnosis.patch is not None
    encrypted = replace(
        diagnosis.patch,
        blobs=tuple(replace(blob, cipher="aes") for blob in diagnosis.patch.blobs),
    )
    record = RunRecord(ledger, begun, most_repairs=3)

    outcome = write_patch(store, replace(diagnosis, patch=encrypted), Policy(min_idle=0.0), record)

    assert outcome.verdict is Verdict.UNREADABLE
    assert written(damaged, encrypted.row.checkpoint_id) == 0
    assert [each.state for each in ledger.repairs.of_run(begun.id)] == [RepairState.ABANDONED]
