"""The verbs with a webhook: what they write is told at their end, and cron needs no worker."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from repair_service.cli.settings import load_settings
from repair_service.errors import UsageError
from repair_service.ledger import migrate
from tests.cli.conftest import Command, Ran
from tests.cli.stores import done
from tests.conftest import Corpus, Database
from tests.worker.receivers import Receiver, ok, receiver

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.fixture
def store(load_corpus: Callable[[str], Corpus]) -> Database:
    database = load_corpus("python-1.2.24").database
    if database.schema != "public":
        pytest.skip("the ledger has one schema, so each test needs a database of its own")
    migrate.upgrade(database.url)
    return database


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """The receiver of the webhook that the environment names."""
    with receiver() as running:
        monkeypatch.setenv("REPAIR_WEBHOOK__URL", running.url)
        monkeypatch.setenv("REPAIR_WEBHOOK__SECRET", SECRET)
        yield running


@pytest.fixture
def run(command: Command, store: Database) -> Command:
    def call(*arguments: str) -> Ran:
        return command(*arguments, "--database-url", store.url)

    return call


def told(there: Receiver) -> list[tuple[str, str]]:
    return sorted((each.document["type"], each.thread_id) for each in there.received)


def test_a_sweep_and_its_undo_are_told_by_themselves(run: Command, there: Receiver) -> None:
    swept = run("sweep", "--yes", "--min-idle", "0", "--format", "json")
    repaired = sorted(t for t, item in swept.items.items() if item["verdict"] == "repaired")
    assert told(there) == [("thread.repaired", thread) for thread in repaired]
    assert {each.document["data"]["run_id"] for each in there.received} == {
        swept.document["run"]["id"]
    }

    there.received.clear()
    run("undo", "--run", "last", "--yes")
    assert told(there) == [("thread.repair_undone", thread) for thread in repaired]


def test_processes_of_a_sweep_tell_too(run: Command, there: Receiver) -> None:
    threads = ("--thread", "agent_partial", "--thread", "agent_three")
    swept = run("sweep", "--yes", "--min-idle", "0", "--format", "json", "--jobs", "2", *threads)
    repaired = sorted(t for t, item in swept.items.items() if item["verdict"] == "repaired")
    assert told(there) == [("thread.repaired", thread) for thread in repaired]


def test_a_receiver_that_is_ill_changes_no_outcome_and_is_told_later(
    run: Command, there: Receiver, store: Database
) -> None:
    there.answering = lambda there, received: 500
    ran = run("repair", "agent_partial", "--min-idle", "0")
    assert ran.code == 0, ran.err
    assert "took 0 of 1 events; it answered 500" in ran.err
    assert SECRET not in ran.err

    assert "due 1, the oldest since" in run_outbox(run, "show").out
    done(store, "UPDATE repair_service.outbox SET due_at = now() - interval '1 day'")
    assert run_outbox(run, "send").code == 3
    there.answering = ok
    done(store, "UPDATE repair_service.outbox SET due_at = now(), state = 'dead', ended_at = now()")
    shown = run_outbox(run, "show", "--format", "json").document
    assert (shown["due"], shown["dead"], shown["dead_letters"][0]["attempts"]) == (0, 1, 2)
    assert "outbox retry" in run_outbox(run, "show").out
    assert run_outbox(run, "retry").out == "1 events are due again.\n"
    sent = run_outbox(run, "send")
    assert (sent.code, sent.out) == (0, "http://127.0.0.1 took 1 of 1 events.\n")


def run_outbox(run: Command, *arguments: str) -> Ran:
    return run("outbox", *arguments)


def test_without_a_webhook_nothing_is_kept_to_be_sent(run: Command) -> None:
    run("sweep", "--yes", "--min-idle", "0")
    assert run_outbox(run, "show", "--format", "json").document["due"] == 0
    ran = run_outbox(run, "send")
    assert (ran.code, "No webhook is set" in ran.err) == (64, True)


def test_a_webhook_that_cannot_be_used_is_said_before_anything_is_written(
    run: Command, there: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPAIR_WEBHOOK__SECRET", "whsec_czNjcmV0")
    ran = run("sweep", "--yes", "--min-idle", "0")
    assert (ran.code, "24 are the least" in ran.err) == (64, True)
    assert run("audit", "--min-idle", "0").code == 2


def test_the_secret_is_in_the_environment_or_a_file_of_its_own(
    run: Command, there: Receiver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("REPAIR_WEBHOOK__SECRET")
    settings = tmp_path / "repair-service.toml"
    settings.write_text(f'[webhook]\nurl = "{there.url}"\nsecret = "{SECRET}"\n')
    ran = run("audit")
    assert (ran.code, "does not belong in this file" in ran.err) == (64, True)
    assert SECRET not in ran.err

    settings.write_text(f'[webhook]\nurl = "{there.url}"\nsecret_file = "secret"\n')
    ran = run("sweep", "--yes")
    assert (ran.code, "secret_file: secret cannot be read" in ran.err) == (64, True)
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    assert run("sweep", "--yes", "--min-idle", "0").code == 2
    assert there.received


def test_a_report_says_nothing_of_the_webhook(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("REPAIR_WEBHOOK__URL", "https://host/?token=s3cret")
    monkeypatch.setenv("REPAIR_WEBHOOK__SECRET", "s3cret")
    settings = load_settings({})
    assert "s3cret" not in repr(settings)
    assert "webhook" not in settings.options()
    monkeypatch.setenv("REPAIR_WEBHOOK", "https://host/")
    with pytest.raises(UsageError, match="REPAIR_WEBHOOK__URL"):
        load_settings({})
