"""Runs the matrix: `python -m tests.matrix.run`, or `make matrix`.

For each LangGraph release: programs on that release leave threads behind in a database of their
own, most of them killed inside a tool; a sweep of this checkout repairs them; programs on that
release go on with every thread, without input and with a new message. Prints a Markdown table of
what held. Ends with 1 where something did not hold, with 3 where a row could not be run.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from repair_service.demo.postgres import start_postgres
from repair_service.repair.diagnosis import Diagnosis
from repair_service.repair.verdict import Policy, Verdict
from repair_service.store.gateway import Store
from repair_service.sweep.run import Sweep
from repair_service.sweep.selection import Selection
from tests.matrix import environments
from tests.matrix.environments import RELEASES, Release, Unavailable

HERE = Path(__file__).parent
CONSTRAINTS = HERE.parents[1] / "constraints.txt"
HEADER = (
    "| LangGraph | saver | agents | left by a kill: repaired "
    "| went on by itself | took a new message | questions still open | healthy, untouched |"
)
ENOUGH = 600
"""Seconds for one release's programs; they take some ten."""


@dataclass(frozen=True, slots=True)
class Row:
    """What held for one release.

    Attributes:
        name: LangGraph and its version.
        saver: The saver's version.
        cells: The other cells of the table.
        wrong: What did not hold, one line each.
    """

    name: str
    saver: str
    cells: tuple[str, ...]
    wrong: tuple[str, ...]


def run_programs(command: Sequence[str], verb: str, url: str, given: Any = None) -> Any:
    """Run a release's program, and read what it prints."""
    done = subprocess.run(
        [*command, verb, url],
        input=None if given is None else json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
        timeout=ENOUGH,
    )
    if done.returncode:
        raise Unavailable(f"`{verb}` ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout)


def sweep(url: str) -> tuple[dict[str, Diagnosis], list[str]]:
    """Repair the store: the outcome by thread, and what a second audit still finds wrong."""
    policy = Policy(min_idle=0)
    with Store.connect(url) as store:
        outcomes = {item.thread_id: item for item in Sweep(store, policy, Selection()).repair()}
        again = [
            f"{item.thread_id}: {item.verdict} behind the sweep"
            for item in Sweep(store, policy, Selection()).audit()
            if item.verdict is not Verdict.WAITING
        ]
    return outcomes, again


def judge(name: str, saver: str, command: Sequence[str], url: str) -> Row:
    """Leave threads, sweep, go on: one row."""
    left = run_programs(command, "leave", url)
    outcomes, wrong = sweep(url)
    done = run_programs(command, "go_on", url, left)
    held: Counter[str] = Counter()
    of: Counter[str] = Counter()
    for item in done:
        thread_id, state = item["thread_id"], item["state"]
        diagnosis = outcomes.get(thread_id)
        outcome = diagnosis.verdict if diagnosis else Verdict.HEALTHY
        parked = item["why"] == "parked"
        if state in ("waiting", "healthy"):
            column, right = state, Verdict.WAITING if state == "waiting" else Verdict.HEALTHY
        else:
            column, right = item["way"], Verdict.REPAIRED
            of["repaired"] += 1
            held["repaired"] += outcome is right
        of[column] += 1
        if outcome is not right:
            wrong.append(f"{thread_id}: {outcome}, not {right}")
        elif not item["held"]:
            wrong.append(f"{thread_id}: {item['why']}")
        elif parked and diagnosis and diagnosis.resume != "park":
            wrong.append(f"{thread_id}: parked, but the sweep said {diagnosis.resume}")
        else:
            held[column] += 1
            held["parked"] += parked
    agents = ", ".join(dict.fromkeys(item["graph"] for item in left))
    cells = [f"{held[column]} of {of[column]}" for column in ("repaired", "continue", "message")]
    if held["parked"]:
        cells[1] += f" ({held['parked']} parked)"
    cells += [f"{held[column]} of {of[column]}" for column in ("waiting", "healthy")]
    return Row(name, saver, (agents, *cells), tuple(wrong))


def judge_python(release: Release, cache: Path, url: str) -> Row:
    """The row of a Python release."""
    python = environments.make(release, cache, CONSTRAINTS)
    versions = environments.versions(python)
    return judge(
        versions["langgraph"],
        versions["langgraph-checkpoint-postgres"],
        [str(python), str(HERE / "program.py")],
        url,
    )


def judge_js(cache: Path, url: str) -> Row:
    """The row of LangGraph.js."""
    directory = environments.make_js(cache)
    # Node looks for packages beside the program, so the program goes there.
    program = directory / "program.mjs"
    program.write_text((HERE / "program.mjs").read_text(encoding="utf-8"), encoding="utf-8")

    def version(package: str) -> str:
        stated = directory / "node_modules" / "@langchain" / package / "package.json"
        return str(json.loads(stated.read_text(encoding="utf-8"))["version"])

    return judge(
        f"JS {version('langgraph')}",
        version("langgraph-checkpoint-postgres"),
        ["node", str(program)],
        url,
    )


def fresh_database(server: str, name: str) -> str:
    """The address of a new, empty database."""
    database = "matrix_" + name.replace(".", "_")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(database)))
    return server.replace("/postgres?", f"/{database}?")


def table(rows: Sequence[Row]) -> str:
    """The rows in Markdown."""
    lines = [HEADER, "|" + " --- |" * (HEADER.count("|") - 1)]
    lines += [f"| {' | '.join((row.name, row.saver, *row.cells))} |" for row in rows]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the rows that are asked for; all of them by default."""
    parser = argparse.ArgumentParser(prog="python -m tests.matrix.run", description=__doc__)
    parser.add_argument(
        "--cache", type=Path, help="keep the environments here (default: a temporary directory)"
    )
    parser.add_argument(
        "--only", action="append", choices=[*(release.name for release in RELEASES), "js"]
    )
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    left_out = []
    with tempfile.TemporaryDirectory() as temporary, start_postgres() as server:
        cache = (options.cache or Path(temporary)).absolute()
        cache.mkdir(parents=True, exist_ok=True)
        for release in (*RELEASES, None):
            name = release.name if release else "js"
            if options.only and name not in options.only:
                continue
            print(f"{name} ...", file=sys.stderr)
            url = fresh_database(server.url, name)
            try:
                row = judge_python(release, cache, url) if release else judge_js(cache, url)
            except Unavailable as reason:
                left_out.append(f"{name}: not run. {reason}")
                continue
            rows.append(row)
            for line in row.wrong:
                print(f"  {line}", file=sys.stderr)
    print(table(rows))
    for line in left_out:
        print(line, file=sys.stderr)
    if any(row.wrong for row in rows):
        return 1
    return 3 if left_out else 0


if __name__ == "__main__":
    sys.exit(main())
