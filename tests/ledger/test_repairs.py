"""Repairs: in the ledger if and only if they are in the store, and the way back."""

import signal
import subprocess
import sys
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.rows import dict_row, namedtuple_row

from repair_service.checkpoint.rows import BlobRow, CheckpointRow
from repair_service.errors import LedgerError, LedgerMismatch
from repair_service.ledger import migrate
from repair_service.ledger import repairs as repairs_module
from repair_service.ledger.gateway import Ledger
from repair_service.ledger.records.repair import (
    BlobKey,
    NewRepair,
    RemovedMessage,
    RepairedCall,
    RepairState,
)
from repair_service.ledger.records.run import StoreIdentity
from repair_service.repair.diagnosis import Diagnosis, Patch
from repair_service.repair.verdict import Verdict
from repair_service.transcript.fault import FaultKind
from tests.conftest import Database
from tests.ledger.examples import HEAD, PATCHED, fault, repair, run

DIES = """
import os, signal, sys
from uuid import UUID
from repair_service.ledger.gateway import Ledger
from repair_service.ledger.records.run import StoreIdentity
from tests.ledger.examples import repair

store = StoreIdentity("there", "there/public", False)
with Ledger(sys.argv[1]) as ledger:
    ledger.repairs.record(None, repair(UUID(sys.argv[2]), store))
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def run_id(ledger: Ledger, store: StoreIdentity) -> UUID:
    return ledger.runs.open(run(store))


def states(ledger: Ledger, run_id: UUID) -> list[RepairState]:
    return [each.state for each in ledger.repairs.of_run(run_id)]


def test_a_repair_comes_back_as_it_was(
    ledger: Ledger, store: StoreIdentity, run_id: UUID, bare: Database
) -> None:
    patch = repair(run_id, store)

    with psycopg.connect(bare.url) as connection:
        assert ledger.repairs.record(connection, patch) == patch.id

    (kept,) = ledger.repairs.of_run(run_id)
    assert kept.state is RepairState.SETTLED
    assert kept.settled_at is not None
    assert (kept.undone_at, kept.undone_by, kept.undone_run) == (None, None, None)
    for name in set(NewRepair.__dataclass_fields__) - {"removed"}:
        assert getattr(kept, name) == getattr(patch, name), name


@pytest.mark.parametrize("rows", [dict_row, namedtuple_row])
def test_it_is_written_in_the_transaction_of_whomever_it_is_given(
    ledger: Ledger, store: StoreIdentity, run_id: UUID, bare: Database, rows: Any
) -> None:
    with bare.connect() as connection:
        connection.execute("CREATE TABLE public.checkpoints (id text)")
    patch = repair(run_id, store, removed=(RemovedMessage("messages", 4, "c", "msgpack", b"\x00"),))

    with psycopg.connect(bare.url, row_factory=rows) as connection:
        connection.execute("INSERT INTO public.checkpoints VALUES ('patched')")
        ledger.repairs.record(connection, patch)
        connection.rollback()
        assert list(ledger.repairs.of_run(run_id)) == []
        assert ledger.repairs.removed_messages(patch.id) == []

        connection.execute("INSERT INTO public.checkpoints VALUES ('patched')")
        ledger.repairs.record(connection, patch)
        assert list(ledger.repairs.of_run(run_id)) == []
        connection.commit()

    assert states(ledger, run_id) == [RepairState.SETTLED]
    assert len(ledger.repairs.removed_messages(patch.id)) == 1


def test_a_ledger_that_refuses_the_row_undoes_the_patch(
    ledger: Ledger, store: StoreIdentity, run_id: UUID, bare: Database
) -> None:
    with bare.connect() as connection:
        connection.execute("CREATE TABLE public.checkpoints (id text)")
    migrate.downgrade(bare.url, "base")

    def patch() -> None:
        with psycopg.connect(bare.url) as connection:
            connection.execute("INSERT INTO public.checkpoints VALUES ('patched')")
            ledger.repairs.record(connection, repair(run_id, store))

    with pytest.raises(LedgerMismatch, match="db upgrade"):
        patch()

    with bare.connect() as connection:
        assert connection.execute("SELECT count(*) FROM public.checkpoints").fetchone() == (0,)


def test_a_refusal_shows_no_value(
    ledger: Ledger, store: StoreIdentity, run_id: UUID, bare: Database
) -> None:
    secret = RemovedMessage("messages", 4, "c", "msgpack", b"secret text")
    patch = repair(run_id, store, removed=(secret,))
    ledger.repairs.record(None, patch)

    with pytest.raises(LedgerError) as again:
        ledger.repairs.record(None, patch)
    with pytest.raises(LedgerError) as raw, psycopg.connect(bare.url) as connection:
        ledger.repairs.record(connection, patch)

    for failure in (again, raw):
        assert "SQLSTATE 23505" in str(failure.value)
        assert "secret" not in repr(failure.value) + repr(patch)
        assert failure.value.__cause__ is None


def test_removed_messages_are_kept_byte_for_byte(
    ledger: Ledger, store: StoreIdentity, run_id: UUID
) -> None:
    removed = (
        RemovedMessage("messages", 4, "call_1", "msgpack", bytes(range(256))),
        RemovedMessage("messages", 9, None, "msgpack+aes", b""),
    )
    patch = repair(run_id, store, removed=removed)

    ledger.repairs.record(None, patch)

    assert tuple(ledger.repairs.removed_messages(patch.id)) == removed


def test_a_patch_says_what_becomes_of_each_call(store: StoreIdentity, run_id: UUID) -> None:
    patch = Patch(
        row=CheckpointRow("thread", "", PATCHED, HEAD, {}, {}),
        blobs=(BlobRow("messages", "5.1", "msgpack", b"content"),),
        head_id=HEAD,
        writes_digest="d" * 32,
        pending=frozenset(),
        above={},
        left=0,
        salvaged=1,
        placeholders=1,
    )
    diagnosis = Diagnosis(
        thread_id="thread",
        checkpoint_ns="",
        checkpoint_id=HEAD,
        verdict=Verdict.REPAIRABLE,
        reason="",
        channel="messages",
        faults=(
            fault(),
            fault(kind=FaultKind.UNCOMMITTED_RESULT, tool_call_id="call_2", mend="salvage"),
            fault(kind=FaultKind.MISPLACED_RESULT, tool_call_id="call_3", mend="move"),
            fault(kind=FaultKind.DUPLICATE_RESULT, tool_call_id="call_4", mend="remove"),
            fault(kind=FaultKind.CALL_MISMATCH, tool_call_id="call_5", mend="none"),
        ),
        resume="continue",
        patch=patch,
    )

    made = NewRepair.of(diagnosis, run_id, store.key)

    assert [(call.tool_call_id, call.outcome) for call in made.calls] == [
        ("call_1", "placeholder"),
        ("call_2", "salvaged"),
        ("call_3", "moved"),
        ("call_4", "removed"),
    ]
    assert made.calls[0] == RepairedCall("messages", 3, "call_1", "charge_card", "placeholder")
    assert (made.from_checkpoint_id, made.to_checkpoint_id) == (HEAD, PATCHED)
    assert made.blobs == (BlobKey("messages", "5.1"),)


def test_with_two_databases_an_intent_is_settled_after(
    ledger: Ledger, store: StoreIdentity, run_id: UUID
) -> None:
    first, second = repair(run_id, store, "a"), repair(run_id, store, "b")
    ledger.repairs.record(None, first)
    ledger.repairs.record(None, second)
    assert [each.id for each in ledger.repairs.open_intents()] == [first.id, second.id]

    assert ledger.repairs.settle([first.id]).settled == (first.id,)
    assert ledger.repairs.abandon([second.id]) == 1

    assert ledger.repairs.open_intents() == []
    standing = ledger.repairs.what_to_undo(store.key, run_id=run_id)
    assert [each.thread_id for each in standing] == ["a"]


def test_settling_again_changes_nothing(ledger: Ledger, store: StoreIdentity, run_id: UUID) -> None:
    patch = repair(run_id, store)
    ledger.repairs.record(None, patch)
    ledger.repairs.settle([patch.id])
    before = list(ledger.repairs.of_run(run_id))

    again = ledger.repairs.settle([patch.id])

    assert (again.settled, again.abandoned) == ((), ())
    assert ledger.repairs.abandon([patch.id]) == 0
    assert list(ledger.repairs.of_run(run_id)) == before


def test_what_a_crash_left_open_is_listed(
    ledger: Ledger, store: StoreIdentity, run_id: UUID, bare: Database
) -> None:
    died = subprocess.run([sys.executable, "-c", DIES, bare.url, str(run_id)], check=False)
    assert died.returncode == -signal.SIGKILL

    (left,) = ledger.repairs.open_intents()

    assert (left.state, left.thread_id) == (RepairState.INTENDED, "thread")
    assert (left.from_checkpoint_id, left.to_checkpoint_id) == (HEAD, PATCHED)
    assert ledger.repairs.open_intents("there/public") == [left]
    assert ledger.repairs.open_intents("elsewhere/public") == []
    assert ledger.repairs.open_intents(before=left.recorded_at) == []
    assert list(ledger.repairs.what_to_undo("there/public", run_id=run_id)) == []


def test_of_two_intents_for_one_checkpoint_the_later_one_wrote_it(
    ledger: Ledger, store: StoreIdentity, run_id: UUID
) -> None:
    died, wrote = repair(run_id, store), repair(run_id, store)
    ledger.repairs.record(None, died)
    ledger.repairs.record(None, wrote)

    done = ledger.repairs.settle([died.id, wrote.id])

    assert (done.settled, done.abandoned) == ((wrote.id,), (died.id,))


def test_an_intent_whose_checkpoint_another_wrote_is_abandoned(
    ledger: Ledger, store: StoreIdentity, run_id: UUID
) -> None:
    died, wrote = repair(run_id, store), repair(run_id, store)
    ledger.repairs.record(None, died)
    ledger.repairs.record(None, wrote)
    ledger.repairs.settle([wrote.id])

    assert ledger.repairs.settle([died.id]).abandoned == (died.id,)


def test_what_was_written_is_named_newest_first(
    ledger: Ledger, store: StoreIdentity, run_id: UUID
) -> None:
    late = "1f0a8c2e-0000-6002-8000-000000000000"
    ids = [
        ledger.repairs.record(None, repair(run_id, store)),
        ledger.repairs.record(
            None, repair(run_id, store, from_checkpoint_id=PATCHED, to_checkpoint_id=late)
        ),
        ledger.repairs.record(None, repair(run_id, store, "another")),
    ]
    ledger.repairs.settle(ids)

    undo = list(ledger.repairs.what_to_undo(store.key, thread_id="thread"))

    assert [each.to_checkpoint_id for each in undo] == [late, PATCHED]
    assert undo[1].blobs == (BlobKey("messages", "00000000000000000000000000000005.0123"),)
    assert len(list(ledger.repairs.what_to_undo(store.key, run_id=run_id))) == 3
    assert list(ledger.repairs.what_to_undo("here/other", thread_id="thread")) == []
    with pytest.raises(ValueError, match="a thread or a run"):
        ledger.repairs.what_to_undo(store.key)


def test_a_repair_that_was_taken_back_says_by_whom(
    ledger: Ledger, store: StoreIdentity, run_id: UUID, bare: Database
) -> None:
    undo_run = ledger.runs.open(run(store, verb="undo"))
    ledger.repairs.settle([ledger.repairs.record(None, repair(run_id, store))])
    (standing,) = ledger.repairs.what_to_undo(store.key, thread_id="thread")

    with psycopg.connect(bare.url) as connection:
        assert ledger.repairs.mark_undone(connection, standing, by="ops", run_id=undo_run)
        assert list(ledger.repairs.what_to_undo(store.key, thread_id="thread")) == [standing]
        connection.commit()
        assert not ledger.repairs.mark_undone(connection, standing, by="other")

    (kept,) = ledger.repairs.of_thread(store.key, "thread")
    assert (kept.undone_by, kept.undone_run) == ("ops", undo_run)
    assert kept.undone_at is not None
    assert list(ledger.repairs.what_to_undo(store.key, thread_id="thread")) == []


def test_a_long_run_is_read_a_page_at_a_time(
    ledger: Ledger, store: StoreIdentity, run_id: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repairs_module, "PAGE", 4)
    ids = [ledger.repairs.record(None, repair(run_id, store, f"{n:02}")) for n in range(10)]

    read = [each.id for each in ledger.repairs.of_run(run_id)]

    assert sorted(read) == sorted(ids)
