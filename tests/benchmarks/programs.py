"""What is measured against what: each a function over a store's address."""

import gc
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import psycopg
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.postgres import PostgresSaver
from psycopg.rows import dict_row

from repair_service.cli.app import main
from repair_service.repair.verdict import Policy, Verdict
from repair_service.store.gateway import Store
from repair_service.store.statements import statement
from repair_service.sweep.run import Sweep
from repair_service.sweep.selection import Selection
from tests.benchmarks.program import make_graph

BATCH = 300
"""Heads that the bare fetch asks for at once: with more or fewer it is slower."""

# As the command begins (cli/app.py); both sides of a ratio have it.
gc.freeze()

POLICY = Policy(min_idle=0)
AUDIT = (sys.executable, "-m", "repair_service", "audit", "--min-idle", "0")


def audit(url: str, threads: Sequence[str] = ()) -> int:
    """The audit, as the verb runs it; the number of heads."""
    with Store.connect(url, read_only=True) as store:
        sweep = Sweep(store, POLICY, Selection(threads=tuple(threads)))
        for _ in sweep.audit():
            pass
        return sweep.totals.heads


def repair(url: str, threads: Sequence[str]) -> int:
    """The sweep of some damaged threads; the number of patches."""
    with Store.connect(url) as store:
        sweep = Sweep(store, POLICY, Selection(threads=tuple(threads)))
        for _ in sweep.repair():
            pass
        return sweep.totals.verdicts[Verdict.REPAIRED]


def fetch(url: str) -> int:
    """The bytes that an audit looks at, fetched with psycopg and thrown away."""
    heads = 0
    after: str | None = None
    with bare(url) as connection:
        while True:
            with connection.cursor(binary=True) as cursor:
                found = _run(cursor, "next_threads", {"after": after, "limit": BATCH})
                if not found:
                    return heads
                threads = [thread for (thread,) in found]
                places = _run(cursor, "heads", {"threads": threads})
                keys = {
                    "threads": [place[0] for place in places],
                    "namespaces": [place[1] for place in places],
                    "checkpoints": [place[2] for place in places],
                }
                _run(cursor, "scanned", keys | {"lists": ["messages"]})
                _run(cursor, "writes", keys | {"channel": None})
            heads += len(places)
            after = threads[-1]


@contextmanager
def bare(url: str) -> Iterator["psycopg.Connection[Any]"]:
    """A connection on which our statements run as fast as they can: compiling them takes longer
    than they do, and a plan for any parameters reads the index from its beginning."""
    with psycopg.connect(url, autocommit=True, prepare_threshold=None) as connection:
        connection.execute("SET jit = off")
        yield connection


def walk(url: str) -> int:
    """The bare walk from head to head, nothing of the heads but their ids."""
    heads = 0
    after: str | None = None
    with bare(url) as connection:
        while True:
            with connection.cursor(binary=True) as cursor:
                found = _run(cursor, "next_threads", {"after": after, "limit": BATCH})
                if not found:
                    return heads
                heads += len(_run(cursor, "heads", {"threads": [each[0] for each in found]}))
            after = found[-1][0]


def _run(cursor: "psycopg.Cursor[Any]", name: str, values: dict[str, Any]) -> list[Any]:
    return cursor.execute(statement(name, "public"), values).fetchall()


@contextmanager
def saver(url: str) -> Iterator[PostgresSaver]:
    """LangGraph's own saver, over a connection as its documentation makes it."""
    with psycopg.connect(
        url, autocommit=True, prepare_threshold=0, row_factory=dict_row
    ) as connection:
        yield PostgresSaver(connection)


def get_tuples(url: str, threads: Sequence[str]) -> int:
    """The usual check of each thread: load it, and look for calls without results."""
    with saver(url) as store:
        for thread_id in threads:
            found = store.get_tuple({"configurable": {"thread_id": thread_id}})
            assert found is not None
            _unanswered(found.checkpoint["channel_values"]["messages"])
    return len(threads)


def list_all(url: str) -> int:
    """The same check over `saver.list(None)`, which walks every checkpoint; heads only."""
    seen: set[str] = set()
    with saver(url) as store:
        for found in store.list(None):
            thread_id = found.config["configurable"]["thread_id"]
            if thread_id not in seen:
                seen.add(thread_id)
                _unanswered(found.checkpoint["channel_values"].get("messages", []))
    return len(seen)


def update_states(url: str, threads: Sequence[str]) -> int:
    """The usual repair of each thread: a made-up result for each call, appended."""
    with saver(url) as store:
        graph = make_graph(store)
        for thread_id in threads:
            config: Any = {"configurable": {"thread_id": thread_id}}
            found = store.get_tuple(config)
            assert found is not None
            results = [
                ToolMessage("The call was interrupted.", tool_call_id=call, status="error")
                for call in _unanswered(found.checkpoint["channel_values"]["messages"])
            ]
            graph.update_state(config, {"messages": results}, as_node="tools")
    return len(threads)


def _unanswered(messages: Sequence[Any]) -> list[str]:
    answered = {each.tool_call_id for each in messages if isinstance(each, ToolMessage)}
    return [
        str(call["id"])
        for each in messages
        if isinstance(each, AIMessage)
        for call in each.tool_calls
        if call["id"] not in answered
    ]


def peak_memory(url: str) -> int:
    """Bytes that `repair-service audit` as a process held at most."""
    # A process that we start ourselves is counted with what we hold: a small one stands between.
    watched = (
        "import resource, subprocess, sys; code = subprocess.call(sys.argv[1:], stdout=-3); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", watched, *AUDIT],
        env=os.environ | {"DATABASE_URL": url},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    peak, code = map(int, done.stdout.split())
    assert code in (0, 2)
    # macOS counts bytes where Linux counts kilobytes.
    return peak * (1 if sys.platform == "darwin" else 1024)


def audit_command(url: str, *flags: str) -> None:
    """`repair-service audit` as a process."""
    done = subprocess.run(
        [*AUDIT, *flags],
        env=os.environ | {"DATABASE_URL": url},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode in (0, 2)


def command_in_here(url: str, *words: str) -> None:
    """A verb of the command in this process, as the interpreter's start is nobody's work."""
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()) as said:
        code = main([*words, "--database-url", url, "--format", "json"])
    assert code in (0, 2), said.getvalue()


def swept_store(url: str, changed: int) -> None:
    """Give a store a ledger, a sweep of weeks ago and one of now, and change some threads then.

    What was repaired lately is looked at again, for a result may come late; here nothing was.
    """
    command_in_here(url, "db", "upgrade")
    command_in_here(url, "sweep", "--yes", "--min-idle", "0")
    with psycopg.connect(url) as connection:
        connection.execute(
            "UPDATE repair_service.runs SET started_at = started_at - interval '30 days',"
            " finished_at = finished_at - interval '30 days'"
        )
    command_in_here(url, "sweep", "--yes", "--min-idle", "0")
    with saver(url) as store:
        graph = make_graph(store)
        for thread_id in some_threads(url, changed):
            config: Any = {"configurable": {"thread_id": thread_id}}
            question = {"messages": [HumanMessage("And the other one?")]}
            graph.update_state(config, question, as_node="__start__")


def incremental_audit(url: str) -> None:
    """An audit that goes on from the last run in the ledger."""
    command_in_here(url, "audit", "--min-idle", "0")


def copied(source: str, target: str) -> None:
    """`migrate copy` of a whole store, into tables that are there."""
    words = ("migrate", "copy", "--yes", "--to-url", target)
    subprocess.run(
        [sys.executable, "-m", "repair_service", *words],
        env=os.environ | {"DATABASE_URL": source},
        stdout=subprocess.DEVNULL,
        check=True,
    )


def dumped(source: str, target: str) -> None:
    """`pg_dump` of the rows of a store, restored into tables that are there."""
    tables = [
        f"--table={name}" for name in ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
    ]
    dump = subprocess.Popen(
        [tool("pg_dump"), "--data-only", *tables, source], stdout=subprocess.PIPE
    )
    restored = [tool("psql"), "--quiet", "--set", "ON_ERROR_STOP=1", target]
    subprocess.run(restored, stdin=dump.stdout, stdout=subprocess.DEVNULL, check=True)
    assert dump.wait() == 0


def tool(name: str) -> str:
    """One of Postgres' programs: on the path, or beside the server that is started here."""
    found = shutil.which(name) or next(
        map(str, Path("/usr/lib/postgresql").glob(f"*/bin/{name}")), ""
    )
    if not found:
        raise FileNotFoundError(f"{name} is not on the path; install Postgres' client programs.")
    return found


def some_threads(url: str, count: int, *, damaged: bool = False) -> list[str]:
    """Ids of threads spread over a store."""
    if damaged:
        with Store.connect(url, read_only=True) as store:
            found = (each.thread_id for each in Sweep(store, POLICY, Selection()).audit())
            return [thread_id for _, thread_id in zip(range(count), found, strict=False)]
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT DISTINCT thread_id FROM checkpoints TABLESAMPLE SYSTEM (20) REPEATABLE (1)"
            " LIMIT %s",
            [count],
        )
        return [thread_id for (thread_id,) in rows]
