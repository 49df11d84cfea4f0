"""The verbs on the stores that real, killed programs left behind."""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import msgspec
import psycopg
import pytest

from repair_service.cli.times import say_time
from repair_service.repair.diagnosis import Diagnosis
from repair_service.repair.verdict import FaultKind, Verdict
from repair_service.report.jsonl import JsonLinesReport
from tests.cli.conftest import Command, Ran
from tests.conftest import Corpus, Database

NEWEST = "python-1.2.24"


class Run(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    verb: str
    started_at: str
    finished_at: str
    store: str
    options: dict[str, Any]


class Totals(msgspec.Struct, forbid_unknown_fields=True):
    threads: int
    heads: int
    verdicts: dict[Verdict, int]
    faults: dict[FaultKind, int]
    salvaged: int
    placeholders: int
    throttled_seconds: float


class Fault(msgspec.Struct, forbid_unknown_fields=True):
    kind: FaultKind
    message_index: int
    tool_call_id: str | None
    tool_name: str | None
    model: str | None
    mend: str


class Item(msgspec.Struct, forbid_unknown_fields=True):
    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str
    verdict: Verdict
    reason: str
    channel: str | None
    faults: list[Fault]
    resume: str | None
    route: list[str]
    route_source: str | None
    new_checkpoint_id: str | None
    idle_seconds: int | None


class Document(msgspec.Struct, forbid_unknown_fields=True):
    """The report in JSON, written out once more: programs depend on it."""

    schema_version: int
    run: Run
    totals: Totals
    items: list[Item]
    exit_code: int
    next_command: str | None


class Summary(msgspec.Struct, forbid_unknown_fields=True):
    """The last line of jsonl: the document without its items."""

    schema_version: int
    run: Run
    totals: Totals
    exit_code: int
    next_command: str | None


Rows = list[tuple[Any, ...]]


def rows_of(database: Database) -> dict[str, Rows]:
    """Every row of the three tables."""
    with database.connect() as connection:
        return {
            table: connection.execute(
                psycopg.sql.SQL("SELECT t::text FROM {} AS t ORDER BY 1").format(
                    psycopg.sql.Identifier(table)
                )
            ).fetchall()
            for table in ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
        }


@pytest.fixture
def store(load_corpus: Callable[[str], Corpus]) -> Database:
    return load_corpus(NEWEST).database


@pytest.fixture
def on_store(command: Command, store: Database) -> Command:
    """The command on that store; the verb comes first."""

    def run(verb: str, *arguments: str) -> Ran:
        return command(verb, *arguments, "--database-url", store.url, "--schema", store.schema)

    return run


def test_audit_lists_every_head_that_is_not_healthy_and_writes_nothing(
    on_store: Command, store: Database
) -> None:
    before = rows_of(store)
    ran = on_store("audit", "--format", "json")
    document = msgspec.json.decode(ran.out, type=Document)

    assert rows_of(store) == before
    assert (ran.code, document.exit_code, document.schema_version) == (2, 2, 1)
    verdicts = Counter(item.verdict for item in document.items)
    healthy = document.totals.verdicts.pop(Verdict.HEALTHY)
    assert verdicts == document.totals.verdicts
    assert healthy + len(document.items) == document.totals.heads
    assert document.run.verb == "audit"
    assert document.run.options["min_idle"] == 600.0
    assert document.next_command is not None
    assert document.next_command.startswith("repair-service sweep ")


def test_items_stream_as_lines_and_the_summary_is_the_last(on_store: Command) -> None:
    lines = on_store("audit", "--format", "jsonl").out.splitlines()
    items = [msgspec.json.decode(line, type=Item) for line in lines[:-1]]
    summary = msgspec.json.decode(lines[-1], type=Summary)
    assert summary.totals.heads - summary.totals.verdicts[Verdict.HEALTHY] == len(items)
    assert summary.exit_code == 2


def test_only_a_head_with_a_patch_has_a_new_checkpoint_and_a_mend(on_store: Command) -> None:
    document = msgspec.json.decode(on_store("audit", "--format", "json").out, type=Document)
    for item in document.items:
        patched = item.verdict is Verdict.REPAIRABLE
        assert (item.new_checkpoint_id is not None) == patched
        assert (item.resume is not None) == patched
        assert all((fault.mend != "none") == patched for fault in item.faults)


def test_with_no_items_the_list_is_empty(on_store: Command) -> None:
    ran = on_store("audit", "--thread", "agent_healthy", "--format", "json")
    if ran.code == 1:  # the corpus names its healthy thread otherwise
        pytest.fail(ran.err)
    assert (ran.code, ran.document["items"], ran.document["next_command"]) == (0, [], None)


def test_no_report_holds_content(on_store: Command, store: Database) -> None:
    result, secret = b"fast a2", b"hunter2"  # of one length, so that the bytes stay valid
    with store.connect() as connection:
        found = connection.execute(
            "SELECT ctid::text, blob FROM checkpoint_writes "
            "WHERE thread_id = 'agent_three' AND position(%s::bytea IN blob) > 0",
            [result],
        ).fetchall()
        assert found
        for place, blob in found:
            connection.execute(
                "UPDATE checkpoint_writes SET blob = %s WHERE ctid = %s::tid",
                [blob.replace(result, secret), place],
            )
    shown = ["show", "agent_three"]
    for arguments in (
        ["audit"],
        ["audit", "--format", "jsonl"],
        shown,
        [*shown, "--format", "json"],
    ):
        ran = on_store(*arguments)
        assert "agent_three" in ran.out
        assert "hunter2" not in ran.out + ran.err
    assert "hunter2" in on_store("show", "agent_three", "--show-content").out
    swept = on_store("sweep", "--yes", "--format", "json")
    assert swept.items["agent_three"]["verdict"] == "repaired"
    assert "hunter2" not in swept.out + swept.err


def test_sweep_writes_what_audit_said_and_nothing_is_left_to_write(
    on_store: Command, store: Database
) -> None:
    before = rows_of(store)
    planned = on_store("audit", "--format", "json").items
    swept = on_store("sweep", "--yes", "--format", "json")
    done = swept.items

    assert done.keys() == planned.keys()
    for thread, item in planned.items():
        written = item["verdict"] == "repairable"
        assert done[thread]["verdict"] == ("repaired" if written else item["verdict"])
        assert done[thread]["new_checkpoint_id"] == item["new_checkpoint_id"]
    # The corpus has heads that no default mends.
    assert swept.code == 2
    after = rows_of(store)
    assert all(set(before[table]) <= set(after[table]) for table in before)
    again = on_store("sweep", "--yes", "--format", "json")
    assert "repaired" not in again.document["totals"]["verdicts"]
    assert rows_of(store) == after


def test_dry_run_writes_nothing(on_store: Command, store: Database) -> None:
    before = rows_of(store)
    assert on_store("sweep", "--dry-run").code == 2
    assert on_store("repair", "agent_three", "--dry-run").code == 2
    assert rows_of(store) == before


def test_faults_alone_exit_0_where_asked(on_store: Command) -> None:
    ran = on_store("audit", "--exit-zero", "--format", "json")
    assert ran.code == ran.document["exit_code"] == 0


def test_repair_mends_one_thread_and_no_other(on_store: Command, store: Database) -> None:
    before = rows_of(store)["checkpoints"]
    ran = on_store("repair", "agent_three", "--format", "json")
    assert (ran.code, ran.items["agent_three"]["verdict"]) == (0, "repaired")
    assert len(rows_of(store)["checkpoints"]) == len(before) + 1
    again = on_store("repair", "agent_three", "--format", "json")
    assert (again.code, again.document["items"]) == (0, [])


@pytest.mark.parametrize(
    ("thread", "flags", "code", "verdict"),
    [
        ("agent_ask", [], 0, "waiting"),
        ("orphan", [], 2, "manual"),
        ("orphan", ["--allow", "orphan_result"], 0, "repaired"),
        ("corrupt", [], 2, "unreadable"),
        ("client_tool", [], 0, "waiting"),
        ("client_tool", ["--allow", "at_rest"], 0, "repaired"),
        ("agent_three", ["--min-idle", "9999d"], 2, "active"),
        ("agent_three", ["--deployed-at", "2000-01-01"], 2, "active"),
        ("agent_three", ["--client-tool", "slow"], 0, "waiting"),
        ("breakpoint", ["--breakpoint", "tools"], 0, "waiting"),
    ],
)
def test_repair_exits_2_when_what_was_asked_was_not_done(
    on_store: Command, thread: str, flags: list[str], code: int, verdict: str
) -> None:
    ran = on_store("repair", thread, *flags, "--format", "json")
    assert (ran.code, ran.items[thread]["verdict"]) == (code, verdict)


@pytest.mark.parametrize(
    ("flags", "resume", "route", "source"),
    [
        ([], "continue", ["model"], "sibling"),
        (["--resume", "park"], "park", [], None),
        (["--route", "other"], "continue", ["other"], "declared"),
    ],
)
def test_where_the_thread_goes_on_can_be_told(
    on_store: Command, flags: list[str], resume: str, route: list[str], source: str | None
) -> None:
    item = on_store("audit", "--thread", "agent_three", *flags, "--format", "json").items[
        "agent_three"
    ]
    assert (item["resume"], item["route"], item["route_source"]) == (resume, route, source)


def test_the_next_command_repeats_the_selection_and_can_be_run(on_store: Command) -> None:
    ran = on_store("audit", "--thread", "agent_three", "--resume", "park", "--format", "json")
    command = ran.document["next_command"]
    assert command.startswith("repair-service sweep ")
    assert command.endswith(" --thread agent_three --resume park")


@pytest.mark.parametrize("verb", ["show", "repair"])
def test_a_thread_that_does_not_exist_is_an_error(on_store: Command, verb: str) -> None:
    ran = on_store(verb, "nobody")
    assert ran.code == 1
    assert "There is no thread 'nobody'" in ran.err


@pytest.mark.parametrize("verb", ["audit", "sweep"])
def test_a_selection_that_names_missing_threads_is_an_error_and_does_the_rest(
    on_store: Command, verb: str
) -> None:
    flags = ["--thread", "agent_three", "--thread", "nobody", "--format", "json"]
    ran = on_store(verb, *flags, *(["--yes"] if verb == "sweep" else []))
    assert ran.code == ran.document["exit_code"] == 1
    assert list(ran.items) == ["agent_three"]
    assert "1 of the 2 threads" in ran.err


def test_the_table_is_readable_at_80_columns(
    on_store: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out = on_store("audit").out
    assert max(len(line) for line in out.splitlines() if not line.startswith("Next")) <= 80
    block = out[out.index("repairable  agent_three\n") :].splitlines()[:3]
    assert block[1].strip() == "1 unanswered_call (slow), 2 uncommitted_result (fast)"
    assert block[2].strip() == "2 salvaged results, 1 placeholder; goes on at model (sibling)"


def test_show_marks_the_fault_and_what_would_be_put_in(on_store: Command) -> None:
    ran = on_store("show", "agent_three", "--format", "json")
    [head] = ran.document["heads"]
    [channel] = head["channels"]
    shown = [
        (line["index"], line["kind"], line["change"], line["answers"], line["placeholder"])
        for line in channel["messages"]
    ]
    assert shown == [
        (0, "human", None, None, False),
        (1, "ai", None, None, False),
        (None, "tool", "insert", "a1", True),
        (None, "tool", "insert", "a2", False),
        (None, "tool", "insert", "a3", False),
    ]
    assert channel["messages"][1]["faults"] == [
        "unanswered_call",
        "uncommitted_result",
        "uncommitted_result",
    ]
    assert all(line["content"] is None for line in channel["messages"])
    assert ran.document["next_command"].endswith("agent_three")


def test_show_marks_a_result_that_moves_once(on_store: Command) -> None:
    out = on_store("show", "misplaced").out
    assert out.count("to be moved here from #4") == 1
    assert "to be removed" not in out


def test_show_says_why_a_thread_is_unreadable(on_store: Command) -> None:
    ran = on_store("show", "corrupt")
    assert ran.code == 0
    assert "unreadable" in ran.out


def test_the_report_goes_to_a_file_where_asked(on_store: Command, tmp_path: Path) -> None:
    ran = on_store("audit", "--format", "json", "--output", "report.json")
    assert (ran.code, ran.out) == (2, "")
    document = msgspec.json.decode((tmp_path / "report.json").read_bytes(), type=Document)
    assert document.items


def test_sweep_waits_until_the_last_old_process_is_gone(
    on_store: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1_900_000_000.0
    slept: list[float] = []
    monkeypatch.setattr("repair_service.cli.running.time.time", lambda: now + sum(slept))
    monkeypatch.setattr("repair_service.cli.running.time.sleep", slept.append)
    flags = ["--deployed-at", say_time(now - 20), "--settle", "1m", "--thread", "agent_three"]
    ran = on_store("sweep", "--yes", *flags, "--format", "json")
    assert (ran.code, ran.items["agent_three"]["verdict"]) == (0, "repaired")
    assert sum(slept) == 40
    assert "Waiting 40s more, until 2030-03-17T17:47:20Z" in ran.err


@pytest.mark.parametrize("arguments", [["sweep", "--yes"], ["audit"], ["show", "agent_three"]])
def test_a_deploy_far_in_the_future_is_a_slip_of_the_pen(
    on_store: Command, arguments: list[str]
) -> None:
    ran = on_store(*arguments, "--deployed-at", "2999-01-01")
    assert ran.code == 64
    assert "--deployed-at: 2999-01-01T00:00:00Z is more than a day away" in ran.err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_between_two_heads_and_the_summary_is_written(
    on_store: Command,
    store: Database,
    monkeypatch: pytest.MonkeyPatch,
    number: signal.Signals,
    code: int,
) -> None:
    class Signalled(JsonLinesReport):
        """Sends the signal while the first written head is reported."""

        def add(self, diagnosis: Diagnosis) -> None:
            super().add(diagnosis)
            if diagnosis.verdict is Verdict.REPAIRED:
                os.kill(os.getpid(), number)

    def report_as(name: str, out: IO[str]) -> Signalled:
        return Signalled(out)

    monkeypatch.setattr("repair_service.cli.opening.report_as", report_as)
    before = len(rows_of(store)["checkpoints"])
    ran = on_store("sweep", "--yes", "--format", "jsonl")
    summary = msgspec.json.decode(ran.out.splitlines()[-1], type=Summary)
    assert ran.code == summary.exit_code == code
    assert summary.totals.verdicts[Verdict.REPAIRED] == 1
    assert len(rows_of(store)["checkpoints"]) == before + 1


def test_a_reader_that_goes_away_is_no_traceback(store: Database) -> None:
    program = [sys.executable, "-m", "repair_service", "audit", "--format", "jsonl"]
    address = ["--database-url", store.url, "--schema", store.schema]
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ran = subprocess.run(
            [*program, *address], stdout=writing, stderr=subprocess.PIPE, text=True
        )
    finally:
        os.close(writing)
    assert ran.returncode == 1
    assert ran.stderr.startswith("Note: There is no ledger")
    assert ran.stderr.count("\n") == 1
