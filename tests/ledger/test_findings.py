"""Findings: every head that was not healthy, in batches, and read a page at a time."""

from collections.abc import Iterator
from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import event

from repair_service.ledger import findings as findings_module
from repair_service.ledger.gateway import Ledger
from repair_service.ledger.records.base import END, Base, Cursor, Earlier, JobCursors
from repair_service.ledger.records.finding import Finding
from repair_service.ledger.records.run import Run, StoreIdentity
from repair_service.ledger.values import plain
from repair_service.repair.diagnosis import Diagnosis
from repair_service.repair.verdict import Verdict
from repair_service.transcript.fault import FaultKind
from tests.ledger.examples import NOON, fault, finding, repair, run


@pytest.fixture
def run_id(ledger: Ledger, store: StoreIdentity) -> UUID:
    return ledger.runs.open(run(store))


def finished(ledger: Ledger, run_id: UUID) -> Run:
    ledger.runs.close(run_id, totals={}, exit_code=0, complete=True)
    kept = ledger.runs.get(run_id)
    assert kept is not None
    return kept


def test_a_finding_comes_back_as_it_was(ledger: Ledger, run_id: UUID) -> None:
    found = [
        finding("a"),
        finding("b", "tools:1", faults=(), verdict=Verdict.WAITING, channel=None, interrupts=2),
        finding(
            "c",
            faults=(
                fault(),
                fault(kind=FaultKind.BAD_CALL_ID, tool_call_id=None, tool_name=None, mend="none"),
            ),
            idle_seconds=None,
            head_at=None,
            resume=None,
            route=(),
            route_source=None,
            new_checkpoint_id=None,
        ),
    ]

    assert ledger.findings.record(run_id, found) == 3

    assert list(ledger.findings.all(run_id)) == found


def test_a_diagnosis_comes_back_without_its_patch(ledger: Ledger, run_id: UUID) -> None:
    diagnosis = Diagnosis(
        thread_id="a",
        checkpoint_ns="",
        checkpoint_id="1f0a8c2e-0000-6000-8000-000000000000",
        verdict=Verdict.MANUAL,
        reason="two results for one call; --allow duplicate_result would remove one",
        channel="messages",
        faults=(fault(kind=FaultKind.DUPLICATE_RESULT, mend="none"),),
        idle_seconds=60.0,
        pending=("tools",),
        interrupts=1,
    )

    ledger.findings.record(run_id, [Finding.of(diagnosis)])

    (kept,) = ledger.findings.all(run_id)
    assert kept.diagnosis() == diagnosis
    assert kept.head_at is not None
    assert kept.head_at.year == 2025


def test_text_that_postgres_refuses_does_not_cost_the_finding(ledger: Ledger, run_id: UUID) -> None:
    odd = fault(tool_name="nul\x00", tool_call_id="half a pair \ud83d", model="\x00")

    ledger.findings.record(run_id, [finding(faults=(odd,), reason="no\x00 \udc00")])

    (kept,) = ledger.findings.all(run_id)
    assert kept.reason == "no\ufffd ?"
    assert kept.faults[0].tool_name == "nul\ufffd"
    assert kept.faults[0].tool_call_id == "half a pair ?"


def test_a_head_that_is_judged_again_has_its_later_verdict(ledger: Ledger, run_id: UUID) -> None:
    ledger.findings.record(run_id, [finding("a"), finding("b")])

    ledger.findings.record(
        run_id, [finding("a", verdict=Verdict.DRIFTED), finding("a", verdict=Verdict.REPAIRED)]
    )

    verdicts = [(each.thread_id, each.verdict) for each in ledger.findings.all(run_id)]
    assert verdicts == [("a", Verdict.REPAIRED), ("b", Verdict.REPAIRABLE)]


def test_pages_follow_one_another_and_miss_nothing(ledger: Ledger, run_id: UUID) -> None:
    places = sorted((f"thread {n % 40}", f"sub:{n % 3}") for n in range(120))
    ledger.findings.record(run_id, [finding(thread, ns) for thread, ns in reversed(places)])

    read, after = [], None
    while page := ledger.findings.page(run_id, after=after, limit=7):
        assert len(page) <= 7
        after = (page[-1].thread_id, page[-1].checkpoint_ns)
        read += [(each.thread_id, each.checkpoint_ns) for each in page]

    assert read == sorted(set(places))


def test_pages_are_in_the_order_of_bytes_whatever_the_collation(
    ledger: Ledger, run_id: UUID
) -> None:
    names = ["B", "a", "ä", "Z", "_", "1", "\U0001f600"]
    ledger.findings.record(run_id, [finding(name) for name in names])

    assert [each.thread_id for each in ledger.findings.all(run_id)] == sorted(
        names, key=lambda name: name.encode()
    )


def test_a_long_run_is_recorded_in_batches(
    ledger: Ledger, run_id: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(findings_module, "BATCH", 10)
    taken: list[int] = []

    def endless() -> Iterator[Finding]:
        for number in range(25):
            taken.append(number)
            yield finding(f"{number:02}")

    commits: list[int] = []
    engine = ledger._database._engine
    event.listen(engine, "commit", lambda connection: commits.append(len(taken)))

    assert ledger.findings.record(run_id, endless()) == 25

    assert commits == [10, 20, 25]
    assert len(list(ledger.findings.all(run_id))) == 25


def test_a_recorder_keeps_what_was_found_before_something_went_wrong(
    ledger: Ledger, run_id: UUID
) -> None:
    def interrupted() -> None:
        with ledger.findings.recorder(run_id) as recorder:
            recorder.add(finding("a"))
            recorder.add(finding("b"))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()

    assert [each.thread_id for each in ledger.findings.all(run_id)] == ["a", "b"]


def test_a_recorder_records_as_it_goes(
    ledger: Ledger, run_id: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(findings_module, "BATCH", 2)
    with ledger.findings.recorder(run_id) as recorder:
        for name in "abc":
            recorder.add(finding(name))
        assert [each.thread_id for each in ledger.findings.all(run_id)] == ["a", "b"]

    assert [each.thread_id for each in ledger.findings.all(run_id)] == ["a", "b", "c"]


def test_what_was_not_healthy_is_looked_at_again(
    ledger: Ledger, store: StoreIdentity, run_id: UUID
) -> None:
    ledger.findings.record(
        run_id,
        [finding("waits", verdict=Verdict.WAITING), finding("mended", verdict=Verdict.REPAIRED)],
    )

    base = finished(ledger, run_id)

    assert list(ledger.findings.not_final(Base.of(base), store.key)) == [
        ("mended", ""),
        ("waits", ""),
    ]


def test_what_was_taken_back_since_is_looked_at_again(
    ledger: Ledger, store: StoreIdentity, run_id: UUID
) -> None:
    earlier = ledger.runs.open(run(store, started_at=NOON - timedelta(days=30)))
    ledger.repairs.record(None, patch := repair(earlier, store, "undone"))
    ledger.repairs.record(None, repair(earlier, store, "stands"))
    ledger.repairs.settle([patch.id])
    ledger.findings.record(run_id, [finding("undone", "elsewhere"), finding("waits")])
    base = finished(ledger, run_id)
    (standing,) = ledger.repairs.what_to_undo(store.key, thread_id="undone")

    ledger.repairs.mark_undone(None, standing, by="ops")

    assert list(ledger.findings.not_final(Base.of(base), store.key)) == [
        ("undone", ""),
        ("undone", "elsewhere"),
        ("waits", ""),
    ]


def test_what_was_repaired_in_the_last_days_is_looked_at_again(
    ledger: Ledger, store: StoreIdentity, run_id: UUID
) -> None:
    for days, thread_id in ((30, "long ago"), (3, "lately")):
        earlier = ledger.runs.open(run(store, started_at=NOON - timedelta(days=days)))
        ledger.repairs.record(None, repair(earlier, store, thread_id))
    base = Base.of(finished(ledger, run_id))
    later = ledger.runs.open(run(store, started_at=NOON + timedelta(days=1)))
    ledger.repairs.record(None, repair(later, store, "since"))

    assert list(ledger.findings.not_final(base, store.key)) == [("lately", ""), ("since", "")]


def test_a_run_over_a_replica_is_gone_on_from_where_that_stood(
    ledger: Ledger, store: StoreIdentity
) -> None:
    policy = {"min_idle": 60, "read_behind": 3600.0}
    read = ledger.runs.open(run(store, policy=policy))

    base = Base.of(finished(ledger, read))

    # What was written in that hour is no older than what it goes on from.
    assert base.began_at == NOON - timedelta(hours=1)
    assert base.since < (NOON - timedelta(hours=1)).timestamp()


def test_a_second_look_goes_on_behind_a_thread(
    ledger: Ledger, store: StoreIdentity, run_id: UUID
) -> None:
    ledger.findings.record(run_id, [finding("a", "ns"), finding("b", "ns"), finding("b:", "")])

    left = ledger.findings.not_final(Base.of(finished(ledger, run_id)), store.key, after="a")

    assert list(left) == [("b", "ns"), ("b:", "")]


def test_a_run_that_went_on_where_another_stopped_is_a_base_with_it(
    ledger: Ledger, store: StoreIdentity, run_id: UUID
) -> None:
    ledger.findings.record(run_id, [finding("first half")])
    cursor = Cursor("walk", "m")
    ledger.runs.close(run_id, totals={}, exit_code=3, complete=False, resume_cursor=cursor)
    stopped = ledger.runs.get(run_id)
    assert stopped is not None
    earlier = Earlier.of(stopped)
    assert earlier == Earlier((run_id,), NOON, cursor)
    went_on = run(store, started_at=NOON + timedelta(days=40), selection={"earlier": earlier})
    ledger.runs.open(went_on)
    ledger.findings.record(went_on.id, [finding("second half")])

    base = Base.of(finished(ledger, went_on.id))

    assert base.runs == (went_on.id, run_id)
    assert base.began_at == NOON
    assert [thread for thread, _ in ledger.findings.not_final(base, store.key)] == [
        "first half",
        "second half",
    ]
    assert ledger.findings.forget(NOON + timedelta(days=90)) == 0
    assert Base.within({"base": plain(base)}) == base


def test_each_job_goes_on_from_its_own_place_as_the_ledger_keeps_it(
    ledger: Ledger, run_id: UUID
) -> None:
    places = (Cursor("walk", "m"), END, None)
    ledger.runs.close(
        run_id, totals={}, exit_code=3, complete=False, resume_cursor=JobCursors(places)
    )
    stopped = ledger.runs.get(run_id)
    assert stopped is not None
    earlier = Earlier.of(stopped)
    assert earlier == Earlier((run_id,), NOON, JobCursors(places))
    assert Earlier.within({"earlier": plain(earlier)}) == earlier
    assert [earlier.takes(jobs) for jobs in (1, 2, 3, 4)] == [False, False, True, False]
    of_jobs = [earlier.of_job(index) for index in (1, 2, 3)]
    assert [each and each.cursor for each in of_jobs] == list(places)


def test_what_was_taken_back_often_hides_nothing_from_the_next_page(
    ledger: Ledger, store: StoreIdentity, run_id: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(findings_module, "PAGE", 2)
    for number, thread_id in enumerate("bbbcd"):
        patch = repair(run_id, store, thread_id, to_checkpoint_id=f"{number}")
        ledger.repairs.settle([ledger.repairs.record(None, patch)])
    for standing in list(ledger.repairs.what_to_undo(store.key, run_id=run_id)):
        ledger.repairs.mark_undone(None, standing, by="ops")
    ledger.findings.record(run_id, [finding("z")])

    places = [
        thread
        for thread, _ in ledger.findings.not_final(Base.of(finished(ledger, run_id)), store.key)
    ]

    assert places == ["b", "c", "d", "z"]


def test_old_findings_are_let_go_of_but_for_those_that_are_needed(
    ledger: Ledger, store: StoreIdentity
) -> None:
    ids = {}
    for day, (name, whole) in enumerate(
        [("old", True), ("part", False), ("base", True), ("later part", False)]
    ):
        begun = run(store, started_at=NOON + timedelta(days=day), whole_store=whole)
        ids[name] = ledger.runs.open(begun)
        ledger.findings.record(begun.id, [finding(name)])
        ledger.runs.close(begun.id, totals={}, exit_code=0, complete=True)

    gone = ledger.findings.forget(NOON + timedelta(days=2, hours=1))

    assert gone == 2
    kept = {name for name, run_id in ids.items() if list(ledger.findings.all(run_id))}
    assert kept == {"base", "later part"}
    assert all(ledger.runs.get(run_id) for run_id in ids.values())
