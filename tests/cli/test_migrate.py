"""The migrations as an operator runs them: looked at, asked for, planned, applied, taken back."""

from collections.abc import Callable
from pathlib import Path

import pytest

from repair_service.ledger import migrate as ledger
from tests.cli.conftest import Command, Ran
from tests.cli.stores import rows_of
from tests.conftest import Corpus, Database

RENAME = ("--rename", "tools=hands", "--rename", "worker|tools=hands", "--min-idle", "0")
THREADS = ("custom_ask", "agent_partial", "subnode_crash")


@pytest.fixture
def store(load_corpus: Callable[[str], Corpus]) -> Database:
    database = load_corpus("python-1.2.24").database
    if database.schema != "public":
        pytest.skip("the ledger has one schema, so each test needs a database of its own")
    ledger.upgrade(database.url)
    return database


@pytest.fixture
def run(command: Command, store: Database) -> Command:
    """The command on three threads of a store with a ledger."""
    chosen = [word for name in THREADS for word in ("--thread", name)]

    def call(*arguments: str, chosen: list[str] = chosen) -> Ran:
        return command(*arguments, *chosen, "--database-url", store.url)

    return call


def test_a_dry_run_names_what_it_would_write_and_writes_nothing(
    run: Command, store: Database
) -> None:
    before = rows_of(store)

    ran = run("migrate", "nodes", *RENAME, "--dry-run")

    assert ran.code == 2
    assert "tools becomes hands, 1 open question with it" in ran.out
    assert "repair-service migrate nodes" in ran.out
    assert "--rename tools=hands" in ran.out
    assert rows_of(store) == before


def test_it_asks_on_a_terminal_and_needs_yes_elsewhere(run: Command, store: Database) -> None:
    before = rows_of(store)
    assert run("migrate", "nodes", *RENAME).code == 5
    assert rows_of(store) == before


KEY = ("--rename", "messages=talk", "--min-idle", "0")
CLASSES = ("--rename", "langchain_core.messages.ai.AIMessage=shop.Said", "--min-idle", "0")


@pytest.mark.parametrize(
    ("kind", "flags"), [("nodes", RENAME), ("channels", KEY), ("types", CLASSES)]
)
def test_what_it_wrote_is_taken_back_row_by_row(
    kind: str, flags: tuple[str, ...], run: Command, store: Database
) -> None:
    before = rows_of(store)
    done = run("migrate", kind, *flags, "--yes", "--format", "json")
    assert done.code == 0
    assert done.document["run"]["verb"] == f"migrate {kind}"
    assert {item["verdict"] for item in done.document["items"]} == {"repaired"}
    written = rows_of(store)
    assert len(written["checkpoint_writes"]) > len(before["checkpoint_writes"])

    assert run("report", "last", chosen=[]).code == 0
    undone = run("undo", "--run", "last", "--yes", chosen=[])

    assert (undone.code, rows_of(store)) == (0, before)


def test_a_patch_that_was_answered_is_kept(run: Command, store: Database) -> None:
    run("migrate", "nodes", *RENAME, "--yes")
    with store.connect() as connection:
        connection.execute(
            "INSERT INTO checkpoint_writes SELECT thread_id, checkpoint_ns, checkpoint_id, "
            "'00000000-0000-0000-0000-000000000000', -4, '__resume__', 'msgpack', "
            "'\\xa3796573', '' FROM checkpoints "
            "WHERE metadata ? 'repair_service' AND thread_id = 'custom_ask'"
        )
    answered = rows_of(store)

    ran = run("undo", "custom_ask", "--yes", chosen=[])

    assert ran.code == 3
    assert "pending writes" in ran.out
    assert rows_of(store) == answered


def test_a_plan_of_it_is_applied_once(run: Command, store: Database, tmp_path: Path) -> None:
    plan = str(tmp_path / "plan.json")
    before = rows_of(store)
    assert run("migrate", "nodes", *RENAME, "--out", plan).code == 2
    assert rows_of(store) == before

    assert run("show", plan, chosen=[]).code == 0
    applied = run("apply", plan, "--yes", "--format", "json", chosen=[])

    assert applied.code == 0
    assert len(applied.document["items"]) == 3
    assert run("apply", plan, "--yes", chosen=[]).code == 4
    assert run("migrate", "nodes", *RENAME, "--dry-run").code == 0


def test_the_audit_before_the_deploy_names_the_migration(run: Command) -> None:
    ran = run("audit", "--nodes", "agent,model,chat,hands,worker", "--min-idle", "0")
    assert ran.code == 2
    assert "stuck_node" in ran.out
    assert "migrate nodes --rename tools=NEW" in ran.out.replace("\n            ", " ")


def test_several_processes_share_a_migration(run: Command) -> None:
    ran = run("migrate", "nodes", *RENAME, "--yes", "--jobs", "2", "--format", "json")
    assert (ran.code, len(ran.document["items"])) == (0, 3)


def test_the_classes_in_use_are_listed_with_counts_and_nothing_is_written(
    run: Command, store: Database
) -> None:
    before = rows_of(store)
    run("migrate", "types", *CLASSES, "--yes")
    written = rows_of(store)

    ran = run("audit", "--types", "--format", "json")

    assert ran.code == 0
    found = {(each["module"], each["class"]): each for each in ran.document["classes"]}
    assert (ran.document["whole"], ran.document["totals"]) == (False, {"threads": 3, "heads": 5})
    assert found["shop", "Said"]["strict"] == "refused"
    assert found["shop", "Said"]["objects"] > found["shop", "Said"]["heads"] > 1
    assert found["langchain_core.messages.human", "HumanMessage"]["strict"] == "allowed"
    table = run("audit", "--types")
    assert "refused  shop.Said" in table.out
    assert "Looked at the selected heads" in table.out
    assert "the whole store" in run("audit", "--types", chosen=[]).out
    assert rows_of(store) == written != before


@pytest.mark.parametrize(
    ("kind", "flag", "said"),
    [
        ("types", "Cart=shop.Cart", "is no class"),
        ("types", "shop.Cart=shop.Cart!", "is no class"),
        ("channels", "messages=branch:to:x", "bare name"),
        ("channels", "__root__=x", "no state key's name"),
    ],
)
def test_names_that_no_class_or_key_has_are_refused(
    kind: str, flag: str, said: str, command: Command
) -> None:
    ran = command("migrate", kind, "--rename", flag, "--database-url", "postgresql:///none")
    assert ran.code == 64
    assert said in ran.err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ([], "give --rename"),
        (["--rename", "tools"], "OLD=NEW"),
        (["--rename", "a=b", "--rename", "a=c"], "twice"),
        (["--rename", "a=b|c"], "bare name"),
        (["--rename", "__start__=b"], "no node's name"),
        (["--preset", "mine"], "create-react-agent-to-create-agent"),
        (["--rename", "a=b", "--remove", "a"], "renamed and removed"),
        (["--rename", "a=a"], "the same name"),
        (["--rename", "a=b", "--rename", "b=a"], "'b' is an old name too"),
        (["--rename", "a=b", "--rename", "b=c"], "'b' is an old name too"),
        (["--rename", "team|a=b", "--rename", "team|b=c"], "'team|b' is an old name too"),
        (["--rename", "a=b", "--remove", "b"], "'b' is an old name too"),
    ],
)
def test_flags_that_cannot_be_meant_are_refused(
    flags: list[str], said: str, command: Command
) -> None:
    ran = command("migrate", "nodes", *flags, "--database-url", "postgresql:///none")
    assert ran.code == 64
    assert said in ran.err
