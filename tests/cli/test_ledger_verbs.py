"""The verbs with a ledger: what is kept, who sees it, and the way back."""

import io
from collections.abc import Callable
from typing import Any

import pytest

from repair_service.errors import LedgerError
from repair_service.ledger import migrate
from tests.cli.conftest import Command, Ran
from tests.cli.stores import asked, done, rows_of
from tests.conftest import Corpus, Database, Server, with_options

NEWEST = "python-1.2.24"


@pytest.fixture
def store(load_corpus: Callable[[str], Corpus]) -> Database:
    database = load_corpus(NEWEST).database
    if database.schema != "public":
        pytest.skip("the ledger has one schema, so each test needs a database of its own")
    return database


@pytest.fixture
def bare(command: Command, store: Database) -> Command:
    """The command on a store without a ledger."""

    def run(*arguments: str) -> Ran:
        return command(*arguments, "--database-url", store.url)

    return run


@pytest.fixture
def kept(bare: Command, store: Database) -> Command:
    """The command on a store with a ledger."""
    migrate.upgrade(store.url)
    return bare


def break_again(store: Database, thread_id: str) -> None:
    """As if the thread had gone on, and had died at the same tool once more."""
    done(
        store,
        "DELETE FROM checkpoints WHERE thread_id = %s AND metadata ? 'repair_service'",
        thread_id,
    )
    asked_blobs = (
        "DELETE FROM checkpoint_blobs AS b WHERE thread_id = %s AND NOT EXISTS (SELECT FROM "
        "checkpoints AS c WHERE c.thread_id = b.thread_id AND c.checkpoint_ns = b.checkpoint_ns "
        "AND c.checkpoint -> 'channel_versions' ->> b.channel = b.version)"
    )
    done(store, asked_blobs, thread_id)


def test_a_run_is_kept_with_who_why_and_what_it_found(
    kept: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPAIR_ACTOR", "ops@example.com")
    audited = kept("audit", "--reason", "deploy 412", "--format", "json").document
    swept = kept("sweep", "--yes", "--format", "json").document

    newest, oldest = kept("runs", "--format", "json").document["runs"]
    assert [newest["id"], oldest["id"]] == [swept["run"]["id"], audited["run"]["id"]]
    assert (oldest["verb"], oldest["actor"], oldest["reason"]) == (
        "audit",
        "ops@example.com",
        "deploy 412",
    )
    assert (newest["complete"], newest["exit_code"]) == (True, 2)
    assert newest["totals"]["verdicts"] == swept["totals"]["verdicts"]

    shown = kept("runs", "show", newest["id"], "--format", "json").document
    assert {each["state"] for each in shown["repairs"]} == {"settled"}
    written = {item["new_checkpoint_id"] for item in swept["items"] if item["new_checkpoint_id"]}
    assert {each["to_checkpoint_id"] for each in shown["repairs"]} == written


@pytest.mark.parametrize("verb", ["audit", "sweep"])
def test_a_past_run_is_reported_as_it_reported_itself(kept: Command, verb: str) -> None:
    flags = ["--yes"] if verb == "sweep" else []
    then = kept(verb, *flags, "--format", "json").document
    now = kept("report", "last", "--format", "json").document
    assert now["items"] == sorted(then["items"], key=lambda item: item["thread_id"])
    for name in ("totals", "exit_code", "schema_version"):
        assert now[name] == then[name]
    assert now["run"]["id"] == then["run"]["id"]


def test_a_past_run_is_reported_in_every_format(kept: Command) -> None:
    run = kept("audit", "--format", "json").document["run"]["id"]
    html = kept("report", run, "--format", "html")
    markdown = kept("report", run, "--format", "markdown")
    table = kept("report", run)
    assert html.out.startswith("<!doctype html>") or html.out.startswith("<!DOCTYPE html>")
    assert "<script" not in html.out
    for ran in (html, markdown, table):
        assert (ran.code, ran.err) == (0, "")
        # Markdown escapes the name's underscore.
        assert "agent_three" in ran.out.replace("\\", "")
    lines = kept("report", run, "--format", "jsonl").out.splitlines()
    assert '"exit_code":2' in lines[-1]


def test_without_a_ledger_a_verb_says_what_is_not_kept_and_goes_on(
    bare: Command, store: Database
) -> None:
    for arguments in (["audit"], ["sweep", "--yes"]):
        ran = bare(*arguments)
        assert ran.code == 2
        assert ran.err.startswith("Note: There is no ledger in the database")
        assert "`repair-service db upgrade`" in ran.err
        assert ran.err.count("\n") == 1
    assert asked(store, "SELECT to_regnamespace('repair_service')") == [(None,)]


@pytest.mark.parametrize(
    "arguments", [["runs"], ["runs", "show", "last"], ["report", "last"], ["undo", "t", "--yes"]]
)
def test_what_is_nothing_without_a_ledger_says_so(bare: Command, arguments: list[str]) -> None:
    ran = bare(*arguments)
    assert (ran.code, ran.out) == (1, "")
    assert "needs the ledger. There is no ledger in the database" in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("arguments", [["runs", "show"], ["report"], ["undo", "--yes", "--run"]])
def test_a_run_that_is_not_there_is_said(kept: Command, arguments: list[str]) -> None:
    ran = kept(*arguments, "00000000-0000-4000-8000-000000000000")
    assert (ran.code, ran.out) == (1, "")
    assert "There is no run 00000000" in ran.err
    assert kept(*arguments, "4711").code == 64


def test_a_role_without_rights_to_a_ledger_audits_all_the_same(
    command: Command, store: Database, server: Server
) -> None:
    role = f"{store.url.rpartition('repair_test_')[2][:12]}_reader"
    done_as_owner = [
        f'CREATE ROLE "{role}"',
        f'GRANT SELECT ON ALL TABLES IN SCHEMA public TO "{role}"',
    ]
    with store.connect() as connection:
        for statement in done_as_owner:
            connection.execute(statement.encode())
    try:
        ran = command("audit", "--database-url", with_options(store.url, options=f"-c role={role}"))
    finally:
        with store.connect() as connection:
            connection.execute(f'DROP OWNED BY "{role}"'.encode())
            connection.execute(f'DROP ROLE "{role}"'.encode())
    assert ran.code == 2
    assert "may not make the schema repair_service" in ran.err
    assert "GRANT CREATE ON DATABASE" in ran.err
    assert "is not kept" in ran.err
    assert ran.err.count("\n") == 1


def test_the_ledger_is_made_looked_at_and_printed(bare: Command) -> None:
    assert bare("db", "check", "--format", "json").document["ready"] is False
    assert bare("db", "check").code == 1
    assert "absent" in bare("db", "current").out
    assert "CREATE SCHEMA IF NOT EXISTS repair_service" in bare("db", "upgrade", "--sql").out
    made = bare("db", "upgrade", "--format", "json").document
    assert (made["before"], made["applied"][-1]) == (None, made["after"])
    assert "already" in bare("db", "upgrade").out
    assert bare("db", "check").code == 0
    current = bare("db", "current", "--format", "json").document
    assert (current["state"], current["revision"]) == ("current", made["after"])


def test_an_undo_leaves_the_store_as_it_was_row_by_row(kept: Command, store: Database) -> None:
    before = rows_of(store)
    swept = kept("sweep", "--yes", "--format", "json").document
    assert rows_of(store) != before

    looked = kept("undo", "--run", "last", "--dry-run", "--format", "json").document
    assert looked["totals"] == {"undone": swept["totals"]["verdicts"]["repaired"], "kept": 0}
    assert rows_of(store) != before

    ran = kept("undo", "--run", "last", "--yes", "--reason", "wrong route", "--format", "json")
    assert (ran.code, ran.document["totals"]) == (0, looked["totals"])
    assert rows_of(store) == before
    again = kept("undo", "--run", swept["run"]["id"], "--yes", "--format", "json")
    assert (again.code, again.document["items"]) == (0, [])
    runs = kept("runs", "--format", "json").document["runs"]
    assert [run["verb"] for run in runs] == ["undo", "undo", "sweep"]
    shown = kept("runs", "show", swept["run"]["id"], "--format", "json").document
    assert all(each["undone_at"] for each in shown["repairs"])


def test_salvaged_results_survive_an_undo_and_a_new_repair(kept: Command, store: Database) -> None:
    first = kept("repair", "agent_three", "--format", "json").items["agent_three"]
    repaired = rows_of(store)
    assert kept("undo", "agent_three", "--yes").code == 0
    second = kept("repair", "agent_three", "--format", "json")
    assert second.items["agent_three"]["faults"] == first["faults"]
    assert second.document["totals"]["salvaged"] == 2
    # The same rows again, but for the time in the new checkpoint.
    after = rows_of(store)
    assert after["checkpoint_blobs"] == repaired["checkpoint_blobs"]
    assert len(after["checkpoints"]) == len(repaired["checkpoints"])


def test_a_patch_that_something_stands_on_is_kept(kept: Command, store: Database) -> None:
    patched = kept("sweep", "--yes", "--format", "json").items["agent_three"]["new_checkpoint_id"]
    done(
        store,
        "INSERT INTO checkpoints SELECT thread_id, checkpoint_ns, 'f' || checkpoint_id,"
        " checkpoint_id, type, checkpoint, metadata - 'repair_service' FROM checkpoints"
        " WHERE thread_id = 'agent_three' AND checkpoint_id = %s",
        patched,
    )
    before = rows_of(store)
    one = kept("undo", "agent_three", "--yes", "--format", "json").document
    assert one["exit_code"] == 3
    [item] = one["items"]
    assert item["outcome"] == "kept"
    assert "a newer checkpoint stands on the patch" in item["reason"]
    assert rows_of(store) == before
    rest = kept("undo", "--run", "last", "--yes", "--format", "json").document
    assert (rest["exit_code"], rest["totals"]["kept"]) == (3, 1)
    assert rest["totals"]["undone"] > 10


def test_a_patch_whose_thread_runs_now_is_kept(kept: Command, store: Database) -> None:
    kept("sweep", "--yes")
    before = rows_of(store)
    running = ("--active-query", "SELECT 'agent_three'")
    one = kept("undo", "agent_three", "--yes", "--format", "json", *running).document
    assert (one["exit_code"], one["totals"]) == (3, {"undone": 0, "kept": 1})
    assert "runs now" in one["items"][0]["reason"]
    assert rows_of(store) == before
    assert kept("undo", "agent_partial", "--yes", *running).code == 0


def test_after_an_undo_the_next_command_can_be_run(kept: Command) -> None:
    repaired = kept("repair", "agent_three", "--format", "json").document["run"]["id"]
    assert kept("undo", "agent_three", "--yes").code == 0
    again = kept("undo", "agent_three", "--yes")
    assert (again.code, again.out.startswith("There is no patch to take back")) == (0, True)

    listed = kept("runs")
    assert listed.out.splitlines()[-1].endswith(f" {repaired}")
    assert "1 head: 1 repaired" in listed.out
    assert not any(line.endswith((";", " ")) for line in listed.out.splitlines())
    undo = kept("runs", "--format", "json").document["runs"][0]
    assert undo["verb"] == "undo"
    assert kept("runs", "show", undo["id"], "--format", "json").document["next_command"] is None
    assert kept("report", repaired).code == 0


def test_undo_needs_one_of_a_thread_and_a_run(command: Command) -> None:
    for arguments in ([], ["t", "--run", "last"]):
        ran = command("undo", *arguments)
        assert ran.code == 64
        assert "undo takes a THREAD or --run RUN" in ran.err


@pytest.mark.parametrize("arguments", [["undo", "t"], ["sweep"]])
def test_without_a_terminal_a_verb_that_writes_needs_yes(
    command: Command, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    ran = command(*arguments, "--database-url", "postgresql://127.0.0.1:1/nowhere")
    assert (ran.code, ran.out) == (5, "")
    assert "give --yes" in ran.err


def test_a_thread_that_breaks_again_and_again_is_put_into_quarantine(
    kept: Command, store: Database
) -> None:
    for _ in range(3):
        assert kept("repair", "agent_three").code == 0
        break_again(store, "agent_three")
    before = rows_of(store)
    for verb in (["audit", "--thread", "agent_three"], ["repair", "agent_three"]):
        ran = kept(*verb, "--format", "json")
        assert ran.code == 2
        item = ran.items["agent_three"]
        assert item["verdict"] == "manual"
        assert "quarantine" in item["reason"]
        assert {fault["mend"] for fault in item["faults"]} == {"none"}
    assert rows_of(store) == before
    assert asked(store, "SELECT thread_id, count FROM repair_service.quarantine") == [
        ("agent_three", 3)
    ]
    allowed = kept("repair", "agent_three", "--allow", "quarantined", "--format", "json")
    assert (allowed.code, allowed.items["agent_three"]["verdict"]) == (0, "repaired")


def test_what_was_taken_back_does_not_count_for_the_quarantine(kept: Command) -> None:
    for _ in range(4):
        assert kept("repair", "agent_three").code == 0
        assert kept("undo", "agent_three", "--yes").code == 0


def test_a_sweep_that_would_write_too_large_a_share_writes_nothing(
    kept: Command, store: Database
) -> None:
    before = rows_of(store)
    ran = kept("sweep", "--yes", "--max-ratio", "0.5", "--format", "json")
    assert ran.code == ran.document["exit_code"] == 5
    assert "repaired" not in ran.document["totals"]["verdicts"]
    assert ran.document["totals"]["verdicts"]["repairable"] > 10
    assert "--max-ratio 0.5: 26 of 44 heads (59%) would be written" in ran.err
    assert rows_of(store) == before
    [run] = kept("runs", "--format", "json").document["runs"]
    assert (run["verb"], run["exit_code"]) == ("sweep", 5)
    assert kept("sweep", "--yes", "--max-ratio", "0.6").code == 2
    assert rows_of(store) != before


def test_a_sweep_stops_writing_at_its_bound_and_goes_on_the_next_time(
    kept: Command, store: Database
) -> None:
    before = len(rows_of(store)["checkpoints"])
    ran = kept("sweep", "--yes", "--max-repairs", "3", "--format", "json")
    assert ran.code == ran.document["exit_code"] == 3
    assert ran.document["totals"]["verdicts"]["repaired"] == 3
    assert "Stopped by --max-repairs 3" in ran.err
    assert len(rows_of(store)["checkpoints"]) == before + 3
    rest = kept("sweep", "--yes", "--format", "json")
    assert rest.document["totals"]["verdicts"]["repaired"] == 23


def test_a_reason_is_required_where_the_settings_say_so(
    kept: Command, store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPAIR_REQUIRE_REASON", "true")
    before = rows_of(store)
    for arguments in (["sweep", "--yes"], ["repair", "agent_three"], ["undo", "t", "--yes"]):
        ran = kept(*arguments)
        assert ran.code == 64
        assert "--reason" in ran.err
    assert rows_of(store) == before
    assert kept("audit", "--thread", "agent_three").code == 2
    assert kept("repair", "agent_three", "--reason", "ticket 4711").code == 0
    assert asked(store, "SELECT reason FROM repair_service.runs WHERE verb = 'repair'") == [
        ("ticket 4711",)
    ]


def test_a_reason_that_cannot_be_kept_keeps_a_sweep_from_writing(
    bare: Command, store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPAIR_REQUIRE_REASON", "true")
    before = rows_of(store)
    ran = bare("sweep", "--yes", "--reason", "ticket 4711")
    assert ran.code == 5
    assert "A reason is required, and cannot be kept" in ran.err
    assert rows_of(store) == before


def test_the_ledger_may_be_in_another_database(
    command: Command, store: Database, empty_database: Database
) -> None:
    before = rows_of(store)
    both = ["--database-url", store.url, "--ledger-url", empty_database.url]
    assert command("db", "upgrade", "--ledger-url", empty_database.url).code == 0
    swept = command("sweep", "--yes", *both, "--format", "json")
    assert asked(store, "SELECT to_regnamespace('repair_service')") == [(None,)]
    states = asked(empty_database, "SELECT state, count(*) FROM repair_service.repairs GROUP BY 1")
    assert states == [("settled", swept.document["totals"]["verdicts"]["repaired"])]
    assert command("report", "last", "--ledger-url", empty_database.url).code == 0
    assert command("undo", "--run", "last", "--yes", *both).code == 0
    assert rows_of(store) == before


def test_what_a_crash_left_open_between_two_databases_is_settled_and_said(
    command: Command,
    store: Database,
    empty_database: Database,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    both = ["--database-url", store.url, "--ledger-url", empty_database.url]
    migrate.upgrade(empty_database.url)

    def lost(*arguments: object) -> None:
        raise LedgerError("The ledger was lost.")

    with monkeypatch.context() as broken:
        broken.setattr("repair_service.ledger.repairs.Repairs.settle", lost)
        assert command("repair", "agent_three", *both).code == 1
    # Recorded before the patch, which never came.
    done(
        empty_database,
        "INSERT INTO repair_service.repairs SELECT gen_random_uuid(), run_id, store_key, 'other',"
        " checkpoint_ns, from_checkpoint_id, to_checkpoint_id, state, pattern, patch, calls, blobs,"
        " writes_digest FROM repair_service.repairs",
    )
    listed = command("runs", *both, "--format", "json").document
    assert listed["open_intents"] == 2
    assert "nobody has said" in command("runs", *both).out

    done(
        empty_database,
        "UPDATE repair_service.repairs SET recorded_at = recorded_at - interval '6 minutes'",
    )
    ran = command("runs", *both, "--format", "json")
    assert ran.document["open_intents"] == 0
    assert "Of its patches 1 are in the store and 1 are not" in ran.err
    states = asked(empty_database, "SELECT thread_id, state FROM repair_service.repairs ORDER BY 1")
    assert states == [("agent_three", "settled"), ("other", "abandoned")]


def test_a_patch_that_is_gone_is_taken_back_in_the_ledger_too(
    kept: Command, store: Database
) -> None:
    assert kept("repair", "agent_three").code == 0
    done(store, "DELETE FROM checkpoints WHERE thread_id = 'agent_three'")
    ran = kept("undo", "agent_three", "--yes", "--format", "json")
    assert ran.code == 0
    assert "not in the store any more" in ran.document["items"][0]["reason"]
    assert kept("undo", "agent_three", "--yes", "--format", "json").document["items"] == []


def test_a_real_result_that_comes_late_takes_the_placeholders_place(
    kept: Command, store: Database
) -> None:
    first = kept("sweep", "--yes", "--format", "json").items["agent_three"]
    # The old process ends after all: the task of the slow call writes what it returned, under the
    # head that it was started from.
    late_result(store, "agent_three", first["checkpoint_id"])
    ran = kept("sweep", "--yes", "--thread", "agent_three", "--format", "json")
    second = ran.items["agent_three"]
    assert (ran.code, second["verdict"]) == (0, "repaired")
    assert second["checkpoint_id"] == first["new_checkpoint_id"]
    assert "come after the placeholder" in second["reason"]
    shown = kept("show", "agent_three", "--format", "json").document["heads"][0]["channels"][0]
    results = [line for line in shown["messages"] if line["kind"] == "tool"]
    assert [line["placeholder"] for line in results] == [False, False, False]
    assert kept("audit", "--thread", "agent_three").code == 0
    # Both patches can be taken back, the newest first.
    undone = kept("undo", "agent_three", "--yes", "--format", "json").document
    assert [item["outcome"] for item in undone["items"]] == ["undone", "undone"]


def late_result(store: Database, thread_id: str, head: str) -> None:
    """What the task of the first call, to `slow`, writes when it ends: as the second one's did."""
    [(task, blob)] = asked(
        store,
        "SELECT task_id, blob FROM checkpoint_writes WHERE thread_id = %s AND checkpoint_id = %s"
        " AND channel = 'messages' AND task_path LIKE '~__pregel_push, 0000000001,%%'",
        thread_id,
        head,
    )
    done(
        store,
        "INSERT INTO checkpoint_writes SELECT thread_id, checkpoint_ns, checkpoint_id,"
        " 'late-' || task_id, idx, channel, type,"
        " CASE WHEN channel = 'messages' THEN %s ELSE blob END,"
        " replace(task_path, '0000000001', '0000000000') FROM checkpoint_writes"
        " WHERE thread_id = %s AND checkpoint_id = %s AND task_id = %s",
        bytes(blob).replace(b"a2", b"a1"),
        thread_id,
        head,
        task,
    )


def test_a_run_that_died_is_listed_and_reported_as_far_as_it_came(
    kept: Command, store: Database
) -> None:
    found = len(kept("audit", "--format", "json").document["items"])
    # As a run whose process died behind its last batch of findings.
    done(
        store,
        "UPDATE repair_service.runs SET finished_at = NULL, exit_code = NULL, totals = NULL,"
        " complete = false",
    )
    assert "it has not ended" in kept("runs").out
    [run] = kept("runs", "--format", "json").document["runs"]
    assert (run["finished_at"], run["exit_code"], run["complete"]) == (None, None, False)
    reported = kept("report", "last", "--format", "json").document
    assert len(reported["items"]) == found
    assert (reported["exit_code"], reported["run"]["finished_at"]) == (None, None)
    assert sum(reported["totals"]["verdicts"].values()) == found
    assert kept("report", "last").code == 0


def test_threads_that_run_now_are_left_alone(kept: Command, store: Database) -> None:
    with store.connect() as connection:
        connection.execute("CREATE TABLE app_runs AS SELECT 'agent_three' AS thread")
    query = "SELECT thread FROM app_runs"
    swept = kept("sweep", "--yes", "--active-query", query, "--format", "json")
    assert swept.items["agent_three"]["verdict"] == "active"
    assert swept.items["agent_partial"]["verdict"] == "repaired"
    wrong = kept("audit", "--active-query", "SELECT nobody FROM app_runs")
    assert (wrong.code, wrong.out.count("repairable")) == (64, 0)
    assert 'column "nobody" does not exist' in wrong.err


def test_the_next_command_repeats_what_decides(kept: Command) -> None:
    flags = ["--last", "50", "--no-infer-breakpoints", "--active-query", "SELECT 'x'"]
    document = kept("audit", *flags, "--thread", "agent_three", "--format", "json").document
    assert document["run"]["options"]["last"] == 50
    assert document["run"]["options"]["infer_breakpoints"] is False
    for flag in ("--last 50", "--no-infer-breakpoints", "--active-query 'SELECT '"):
        assert flag in document["next_command"]


def test_the_addresses_of_both_databases_stay_secret(command: Command) -> None:
    secret = "postgresql://me:hunter2@127.0.0.1:1/db"
    for arguments in (
        ["audit", "--database-url", secret, "--ledger-url", secret],
        ["db", "upgrade", "--ledger-url", secret],
        ["runs", "--ledger-url", secret],
        ["report", "last", "--ledger-url", secret, "--format", "json"],
    ):
        ran: Any = command(*arguments)
        assert ran.code == 1
        assert "hunter2" not in ran.out + ran.err
