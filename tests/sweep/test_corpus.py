"""Every thread that real programs left behind becomes what it must become."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from repair_service.checkpoint.tasks import read_head
from repair_service.checkpoint.transcripts import read_transcripts
from repair_service.repair.verdict import Policy, Verdict
from repair_service.store.gateway import Store
from repair_service.sweep.run import Sweep
from repair_service.sweep.selection import Selection
from tests.conftest import Corpus, Database
from tests.corpus.loader import VERSIONS, Expected

TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes", "checkpoint_migrations")
NO_WAIT = Policy(min_idle=0.0)


@contextmanager
def opened(database: Database) -> Iterator[Store]:
    with Store.connect(database.url, schema=database.schema) as store:
        yield store


def audit(database: Database, policy: Policy = NO_WAIT) -> dict[str, Verdict]:
    """The verdict of each thread; the one that is not healthy where a thread has several heads."""
    with opened(database) as store:
        found = Sweep(store, policy, Selection()).audit()
        return {diagnosis.thread_id: diagnosis.verdict for diagnosis in found}


def sweep(database: Database, policy: Policy = NO_WAIT) -> dict[str, Verdict]:
    with opened(database) as store:
        found = Sweep(store, policy, Selection()).repair()
        return {diagnosis.thread_id: diagnosis.verdict for diagnosis in found}


def all_rows(database: Database) -> dict[str, set[tuple[Any, ...]]]:
    with database.connect() as connection:
        return {
            table: {row[0] for row in connection.execute(f"SELECT md5(t::text) FROM {table} t")}
            for table in TABLES
        }


def rows_of(database: Database, thread_id: str) -> int:
    with database.connect() as connection:
        row = connection.execute(
            "SELECT count(*) FROM checkpoints WHERE thread_id = %s", (thread_id,)
        ).fetchone()
        assert row is not None
        return int(row[0])


def right_verdicts(expected: Expected) -> set[Verdict]:
    """The verdicts that expected.json allows without any switch or declaration."""
    verdict = expected.verdict
    if verdict.startswith("waiting while the question is open"):
        return {Verdict.WAITING}
    return {Verdict(verdict.split(";")[0].split(",")[0])}


def test_every_thread_has_its_verdict(corpus: Corpus) -> None:
    verdicts = audit(corpus.database)
    wrong = {
        each.thread_id: (verdicts.get(each.thread_id, Verdict.HEALTHY), each.verdict)
        for each in corpus.expected
        if verdicts.get(each.thread_id, Verdict.HEALTHY) not in right_verdicts(each)
    }
    assert wrong == {}
    assert set(verdicts) <= {each.thread_id for each in corpus.expected}


def test_a_sweep_changes_no_row_that_was_there(corpus: Corpus) -> None:
    before = all_rows(corpus.database)
    sweep(corpus.database)
    after = all_rows(corpus.database)
    for table in TABLES:
        assert before[table] <= after[table]
    assert before["checkpoint_writes"] == after["checkpoint_writes"]
    assert before["checkpoints"] != after["checkpoints"]


def test_a_second_audit_finds_nothing_repairable(corpus: Corpus) -> None:
    outcomes = sweep(corpus.database)
    assert Verdict.REPAIRED in outcomes.values()
    assert not {Verdict.FAILED, Verdict.DRIFTED} & set(outcomes.values())
    assert Verdict.REPAIRABLE not in audit(corpus.database).values()


def test_threads_that_need_no_repair_get_no_row(corpus: Corpus) -> None:
    untouched = [
        each
        for each in corpus.expected
        if not right_verdicts(each) & {Verdict.REPAIRABLE, Verdict.REPAIRED}
    ]
    before = {each.thread_id: rows_of(corpus.database, each.thread_id) for each in untouched}
    sweep(corpus.database)
    after = {each.thread_id: rows_of(corpus.database, each.thread_id) for each in untouched}
    assert untouched
    assert before == after


def test_results_on_disk_stay_in_the_list(corpus: Corpus) -> None:
    sweep(corpus.database)
    kept = {each.thread_id: each.results_kept for each in corpus.expected if each.results_kept}
    with opened(corpus.database) as store:
        threads = store.threads(list(kept))
    for thread_id, results in kept.items():
        thread = threads[thread_id]
        texts = [
            message.raw
            for namespace, rows in thread.heads.items()
            for transcript in read_transcripts(
                read_head(rows), thread.ancestors.get(namespace, ()), False
            ).values()
            for message in transcript.messages
            if message.kind == "tool" and not message.placeholder
        ]
        for result in results:
            assert any(result.encode() in text for text in texts), (thread_id, result)


@pytest.mark.parametrize("version", [each for each in VERSIONS if each.startswith("python")])
def test_a_declared_breakpoint_waits(version: str, load_corpus: Callable[[str], Corpus]) -> None:
    corpus = load_corpus(version)
    policy = Policy(min_idle=0.0, breakpoints=frozenset({"tools"}))
    assert audit(corpus.database, policy)["breakpoint"] is Verdict.WAITING


@pytest.mark.parametrize("version", [each for each in VERSIONS if each.startswith("python")])
@pytest.mark.parametrize(
    ("thread_id", "kind"), [("duplicate", "duplicate_result"), ("orphan", "orphan_result")]
)
def test_an_allowed_fault_is_mended(
    version: str, thread_id: str, kind: str, load_corpus: Callable[[str], Corpus]
) -> None:
    corpus = load_corpus(version)
    policy = Policy(min_idle=0.0, allow=frozenset({kind}))
    assert sweep(corpus.database, policy)[thread_id] is Verdict.REPAIRED


def test_a_young_head_is_left_for_later(corpus: Corpus) -> None:
    verdicts = audit(corpus.database, Policy(min_idle=10.0**9))
    assert Verdict.REPAIRABLE not in verdicts.values()
    assert Verdict.ACTIVE in verdicts.values()
