"""Saved plans: made, read, applied exactly and once, and refused where the store has moved on."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from repair_service.ledger import migrate
from tests.cli.conftest import Command, Ran
from tests.cli.stores import done, rows_of
from tests.conftest import Corpus, Database

NEWEST = "python-1.2.24"
PLAN = "plan.json"


@pytest.fixture
def store(load_corpus: Callable[[str], Corpus]) -> Database:
    database = load_corpus(NEWEST).database
    if database.schema != "public":
        pytest.skip("the ledger has one schema, so each test needs a database of its own")
    return database


@pytest.fixture
def on_store(command: Command, store: Database) -> Command:
    """The command on the store; a ledger is there where a test has made it."""

    def run(*arguments: str) -> Ran:
        return command(*arguments, "--database-url", store.url)

    return run


def plan(on_store: Command, *flags: str) -> dict[str, Any]:
    """Make a plan of it all."""
    ran = on_store("plan", "--out", PLAN, *flags, "--format", "json")
    assert ran.code == ran.document["exit_code"] == 2
    assert ran.document["next_command"].startswith("repair-service apply ")
    loaded: dict[str, Any] = json.loads(Path(PLAN).read_text())
    return loaded


def test_a_plan_is_applied_as_it_says_and_nothing_else(on_store: Command, store: Database) -> None:
    migrate.upgrade(store.url)
    before = rows_of(store)
    saved = plan(on_store)
    assert rows_of(store) == before

    applied = on_store("apply", PLAN, "--yes", "--reason", "ticket 4711", "--format", "json")
    assert applied.code == applied.document["exit_code"] == 0
    assert applied.document["totals"]["verdicts"] == {"repaired": len(saved["items"])}
    assert {item["new_checkpoint_id"] for item in applied.document["items"]} == {
        item["new_checkpoint_id"] for item in saved["items"]
    }
    after = rows_of(store)
    assert all(set(before[table]) <= set(after[table]) for table in before)
    assert len(after["checkpoints"]) == len(before["checkpoints"]) + len(saved["items"])
    # What it wrote is a run like any other.
    assert on_store("report", "last", "--format", "json").document["items"]
    assert on_store("undo", "--run", "last", "--yes").code == 0
    assert rows_of(store) == before


def test_a_used_plan_is_refused_and_can_still_be_read(on_store: Command, store: Database) -> None:
    migrate.upgrade(store.url)
    plan(on_store)
    assert on_store("apply", PLAN, "--yes").code == 0
    after = rows_of(store)
    again = on_store("apply", PLAN, "--yes")
    assert (again.code, again.out) == (4, "")
    assert "This plan was applied at " in again.err
    assert rows_of(store) == after
    # Taken back or not: a plan is used once.
    assert on_store("undo", "--run", "last", "--yes").code == 0
    assert on_store("apply", PLAN, "--yes").code == 4
    assert "agent_three" in on_store("show", PLAN).out


def test_without_a_ledger_a_second_use_finds_every_patch_there(
    on_store: Command, store: Database
) -> None:
    plan(on_store)
    assert on_store("apply", PLAN, "--yes").code == 0
    after = rows_of(store)
    again = on_store("apply", PLAN, "--yes", "--format", "json")
    assert again.code == 4
    assert set(again.document["totals"]["verdicts"]) == {"drifted"}
    assert {item["reason"] for item in again.document["items"]} == {
        "This patch is there already; nothing was written."
    }
    assert rows_of(store) == after


def test_what_drifted_is_refused_by_name_and_the_rest_is_written(
    on_store: Command, store: Database
) -> None:
    saved = plan(on_store)
    heads = {item["thread_id"]: item["checkpoint_id"] for item in saved["items"]}
    done(
        store,
        "INSERT INTO checkpoint_writes SELECT thread_id, checkpoint_ns, checkpoint_id, 'late',"
        " idx, channel, type, blob FROM checkpoint_writes WHERE thread_id = 'agent_three'"
        " AND checkpoint_id = %s AND channel = 'messages' LIMIT 1",
        heads["agent_three"],
    )
    done(
        store,
        "INSERT INTO checkpoints SELECT thread_id, checkpoint_ns, 'f' || checkpoint_id,"
        " checkpoint_id, type, checkpoint, metadata FROM checkpoints"
        " WHERE thread_id = 'agent_partial' AND checkpoint_id = %s",
        heads["agent_partial"],
    )
    done(store, "DELETE FROM checkpoints WHERE thread_id = 'middle'")
    ran = on_store("apply", PLAN, "--yes", "--format", "json")
    assert ran.code == 4
    drifted = {
        item["thread_id"]: item["reason"]
        for item in ran.document["items"]
        if item["verdict"] == "drifted"
    }
    assert drifted["agent_three"].startswith("Not as planned: the head's pending writes")
    assert drifted["agent_partial"] == "The thread has a newer checkpoint."
    assert drifted["middle"] == "The thread is not in the store any more."
    assert ran.document["totals"]["verdicts"]["repaired"] == len(heads) - len(drifted)
    assert ran.document["next_command"].startswith("repair-service plan ")


def test_a_plan_holds_no_content(on_store: Command, store: Database) -> None:
    plan(on_store)
    text = Path(PLAN).read_text()
    results = on_store("show", "agent_three", "--show-content").out
    assert "fast a2" in results
    assert "fast a2" not in text
    assert "interrupted before a result" in text, "the operator's own placeholder text is policy"


def test_a_plan_is_shown_without_a_database(on_store: Command, command: Command) -> None:
    saved = plan(on_store, "--allow", "orphan_result")
    shown = command("show", PLAN)
    assert shown.code == 0
    assert f"{len(saved['items'])} heads to be written." in shown.out
    assert "It allows orphan_result." in shown.out
    assert command("show", PLAN, "--format", "json").document == saved


def test_the_plans_own_policy_is_applied_whatever_is_set_now(
    on_store: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = plan(on_store, "--allow", "orphan_result", "--resume", "park", "--min-idle", "1h")
    monkeypatch.setenv("REPAIR_MIN_IDLE", "9999d")
    ran = on_store("apply", PLAN, "--yes", "--format", "json")
    assert ran.code == 0
    assert len(ran.document["items"]) == len(saved["items"])
    assert ran.items["orphan"]["verdict"] == "repaired"
    assert ran.items["agent_three"]["resume"] == "park"


def test_a_thread_that_runs_when_the_plan_is_applied_is_left_alone(
    on_store: Command, store: Database
) -> None:
    with store.connect() as connection:
        connection.execute("CREATE TABLE app_runs (thread text)")
    plan(on_store, "--active-query", "SELECT thread FROM app_runs")
    done(store, "INSERT INTO app_runs VALUES ('agent_three')")
    ran = on_store("apply", PLAN, "--yes", "--format", "json")
    assert ran.code == 4
    assert "runs now" in ran.items["agent_three"]["reason"]
    assert ran.document["totals"]["verdicts"]["drifted"] == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no plan; make one with plan --out FILE."),
        ("{}", "is no plan"),
        ('{"plan_version": 1}', "is no plan"),
        ("\ufffd", "is no plan"),
    ],
)
def test_what_is_no_plan_is_wrong_usage(command: Command, text: str, said: str) -> None:
    Path(PLAN).write_text(text)
    ran = command("apply", PLAN, "--yes")
    assert (ran.code, ran.out) == (64, "")
    assert said in ran.err
    assert command("apply", "none.json", "--yes").code == 64


def test_a_plan_of_another_form_says_to_make_it_anew(on_store: Command) -> None:
    saved = plan(on_store)
    Path(PLAN).write_text(json.dumps({**saved, "plan_version": 2}))
    ran = on_store("apply", PLAN, "--yes")
    assert ran.code == 64
    assert "a plan of form 2" in ran.err


def test_a_plan_that_cannot_be_written_is_said_before_the_store_is_read(command: Command) -> None:
    nowhere = "postgresql://127.0.0.1:1/db"
    ran = command("plan", "--out", "none/plan.json", "--database-url", nowhere)
    assert ran.code == 64
    assert "--out none/plan.json cannot be written" in ran.err


def test_a_run_that_fails_leaves_no_plan(
    on_store: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    from repair_service.errors import StoreUnreachable
    from repair_service.sweep.run import Sweep

    judge = Sweep.audit

    def fail(self: Sweep) -> Any:
        yield next(iter(judge(self)))
        raise StoreUnreachable("The connection was lost.")

    monkeypatch.setattr(Sweep, "audit", fail)
    assert on_store("plan", "--out", PLAN).code == 1
    assert not list(Path().glob("plan.json*"))
