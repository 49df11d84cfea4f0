"""`--run-time`: a run ends in time, and the next one goes on where it stopped."""

from collections.abc import Callable

import pytest

from repair_service.ledger import migrate
from tests.cli.conftest import Command, Ran
from tests.cli.stores import asked
from tests.conftest import Corpus, Database
from tests.corpus import loader

COPIES = 6
"""Of each thread: more than a first batch holds."""


@pytest.fixture
def store(load_corpus: Callable[[str], Corpus]) -> Database:
    database = load_corpus("python-1.2.24").database
    if database.schema != "public":
        pytest.skip("the ledger has one schema, so each test needs a database of its own")
    with database.connect() as connection:
        loader.multiply(connection, COPIES)
    migrate.upgrade(database.url)
    return database


@pytest.fixture
def run(command: Command, store: Database) -> Command:
    def call(*arguments: str) -> Ran:
        words = ("--min-idle", "0", "--format", "json", "--database-url", store.url)
        return command(*arguments, *words)

    return call


def places(ran: Ran) -> list[tuple[str, str, str]]:
    return [
        (item["thread_id"], item["checkpoint_ns"], item["verdict"])
        for item in ran.document["items"]
    ]


def in_parts(run: Command, *words: str) -> list[Ran]:
    """Runs of no time at all, until one comes to the end."""
    parts = [run(*words, "--run-time", "0s")]
    while parts[-1].code == 3 and len(parts) < 60:
        assert "--run-time" in parts[-1].err
        parts.append(run(*words, "--run-time", "0s"))
        assert "Goes on where run" in parts[-1].err
    return parts


def test_the_parts_find_together_what_one_run_finds(run: Command) -> None:
    whole = places(run("audit", "--full"))
    parts = in_parts(run, "audit")
    assert len(parts) > 2
    assert sorted(place for part in parts for place in places(part)) == sorted(whole)


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_the_last_part_is_the_base_of_the_next_run(
    run: Command, store: Database, jobs: str
) -> None:
    in_parts(run, "sweep", "--yes", "--jobs", jobs)
    assert asked(store, "SELECT complete FROM repair_service.runs ORDER BY started_at DESC LIMIT 1")
    after = run("sweep", "--yes")
    assert "Looks at what has changed since" in after.err
    assert "repaired" not in after.document["totals"]["verdicts"]
    assert "repairable" not in {verdict for _, _, verdict in places(run("audit", "--full"))}


def test_another_selection_does_not_go_on_there(run: Command) -> None:
    assert run("audit", "--run-time", "0s").code == 3
    assert "Goes on" not in run("audit", "--thread", "agent_three").err
    assert "Goes on" not in run("sweep", "--dry-run", "--full").err


def test_several_jobs_go_on_each_where_it_stopped(run: Command) -> None:
    parts = [run("audit", "--jobs", "2", *more) for more in (*[("--run-time", "0s")] * 2, ())]
    assert [part.code for part in parts] == [3, 3, 2]
    assert "Goes on where run" in parts[1].err
    assert "Goes on where run" in parts[2].err
    assert all(part.document["totals"]["heads"] for part in parts)
    assert sorted(place for part in parts for place in places(part)) == sorted(
        places(run("audit", "--full"))
    )


def test_several_jobs_go_on_where_one_process_stopped(run: Command) -> None:
    whole = places(run("audit", "--full"))
    first = run("audit", "--run-time", "0s")
    rest = run("audit", "--jobs", "2")
    assert "Goes on where run" in rest.err
    assert sorted(places(first) + places(rest)) == sorted(whole)


def test_another_number_of_jobs_begins_anew_and_says_so(run: Command) -> None:
    whole = places(run("audit", "--full"))
    first = run("audit", "--jobs", "2", "--run-time", "0s")
    assert (first.code, "with --jobs 2, goes on" in first.err) == (3, True)
    other = run("audit", "--jobs", "3")
    assert "Does not go on where run" in other.err
    assert sorted(places(other)) == sorted(whole)
