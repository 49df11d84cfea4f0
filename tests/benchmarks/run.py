"""`make bench`: the service's speed and memory, as ratios, side by side on one store.

Both sides of a ratio run in turn, A B A B, on the same store in the same minute; the ratio is the
median of the pairs, so that what else the machine does falls on both alike.
"""

import argparse
import os
import platform
import shlex
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.benchmarks import programs
from tests.benchmarks.fill import CHECKPOINTS, Shape
from tests.benchmarks.stores import Stores, stores

RESULTS = Path(__file__).with_name("RESULTS.md")
MEGABYTE = 1_000_000

WHOLE_LISTS = (
    "An audit reads the whole list of every head: the rows of `fetch` say what that alone costs "
    "here. `get_tuple` pays the same once, and then its decoding."
)
FEW_CHECKPOINTS = (
    "`list` reads what `get_tuple` does for each checkpoint, and a thread has 15 of them. The "
    "ratio grows with the checkpoints a thread."
)
OF_THE_DAMAGED = (
    "A clean head costs the same. A damaged thread is judged by its history, up to 500 checkpoints "
    "of it, and has ten times as much here: 1 % of the threads are damaged."
)
EACH_CHECKED = (
    "A repair judges the thread by its history, locks it, compares the head and its writes, "
    "inserts, reads the head back, judges it again and commits, each thread by itself, in about 14 "
    "statements that a pooler lets nobody prepare; `update_state` does nothing of this. Judging "
    "twice alone takes about a millisecond."
)
BEGINNING = (
    "An incremental run also looks at the changed threads in whole, and begins as a command does, "
    "with its ledger: what that takes does not grow with the store."
)
PYTHON = (
    "What is fetched is thrown away in C; an audit reads each list in Python beside that, and the "
    "whole history of each damaged thread."
)
SAME_CORES = "The server is on the same two cores as both processes, and one of them keeps it busy."
READ_BACK = "It reads the rows back from the other store to compare them, which `pg_dump` does not."


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table.

    Attributes:
        what: What was measured against what, and on how much.
        ours: Our side, with its unit.
        theirs: The other side.
        ratio: The figure that is bounded.
        bound: What it must not be above; below, where `at_least`.
        at_least: Whether a greater figure is better.
        why: What stands in the way, where it is missed.
    """

    what: str
    ours: str
    theirs: str
    ratio: float
    bound: float
    at_least: bool = False
    why: str = ""

    @property
    def holds(self) -> bool:
        return self.ratio >= self.bound if self.at_least else self.ratio <= self.bound

    @property
    def short(self) -> str:
        """By how much it is missed."""
        sign = "at least" if self.at_least else "at most"
        return f"{self.ratio:.2f}, where {sign} {self.bound:g} is asked"


@dataclass(frozen=True, slots=True)
class Pairs:
    """Times of two programs that ran in turn, in seconds a unit of work."""

    ours: Sequence[float]
    theirs: Sequence[float]

    @property
    def ratio(self) -> float:
        """Ours over theirs."""
        return statistics.median(a / b for a, b in zip(self.ours, self.theirs, strict=True))

    def said(self) -> tuple[str, str]:
        return _micro(statistics.median(self.ours)), _micro(statistics.median(self.theirs))


def interleaved(
    ours: Callable[[int], int], theirs: Callable[[int], int], rounds: int, *, warm: bool = True
) -> Pairs:
    """Run two programs in turn; each says how many units of work it did. The first run warms up."""
    if warm:
        ours(0)
        theirs(0)
    times: list[list[float]] = [[], []]
    for number in range(rounds):
        for side, program in enumerate((ours, theirs)):
            began = time.perf_counter()
            done = program(number)
            times[side].append((time.perf_counter() - began) / done)
    return Pairs(*times)


def _micro(seconds: float) -> str:
    return f"{seconds * 1e6:,.0f} us"


class Bench:
    """All measurements over the stores of one server."""

    def __init__(self, stores_: Stores, rounds: int) -> None:
        self._stores = stores_
        self._rounds = rounds

    def against_fetch(self, threads: int) -> Row:
        url = self._stores.store(Shape(threads))
        pairs = interleaved(
            lambda _: programs.audit(url), lambda _: programs.fetch(url), self._rounds
        )
        ours, theirs = (f"{said} a head" for said in pairs.said())
        what = f"audit : the same bytes fetched and thrown away; {threads:,} threads"
        return Row(what, ours, theirs, pairs.ratio, 1.25, why=PYTHON)

    def against_get_tuple(self, threads: int) -> Row:
        url = self._stores.store(Shape(threads))
        ids = programs.some_threads(url, 200)
        pairs = interleaved(
            lambda _: programs.audit(url), lambda _: programs.get_tuples(url, ids), self._rounds
        )
        ours, theirs = (f"{said} a thread" for said in pairs.said())
        what = f"`get_tuple` a thread : audit; {threads:,} threads"
        return Row(what, ours, theirs, 1 / pairs.ratio, 10, at_least=True, why=WHOLE_LISTS)

    def against_list(self, threads: int) -> Row:
        url = self._stores.store(Shape(threads))
        pairs = interleaved(
            lambda _: programs.audit(url), lambda _: programs.list_all(url), self._rounds
        )
        ours, theirs = (f"{said} a thread" for said in pairs.said())
        what = f"`saver.list(None)` : audit; {threads:,} threads"
        return Row(what, ours, theirs, 1 / pairs.ratio, 50, at_least=True, why=FEW_CHECKPOINTS)

    def longer_threads(self, threads: int) -> Row:
        longer = self._stores.store(Shape(threads, CHECKPOINTS * 10))
        usual = self._stores.store(Shape(threads))
        pairs = interleaved(
            lambda _: programs.audit(longer), lambda _: programs.audit(usual), self._rounds
        )
        ours, theirs = (f"{said} a head" for said in pairs.said())
        what = (
            f"audit, {CHECKPOINTS * 10} checkpoints a thread : {CHECKPOINTS}; {threads:,} threads"
        )
        return Row(what, ours, theirs, pairs.ratio, 1.15, why=OF_THE_DAMAGED)

    def against_update_state(self, threads: int) -> Row:
        with self._stores.copy(Shape(threads)) as url:
            damaged = programs.some_threads(url, threads, damaged=True)
            # Few and large parts: a sweep looks at other threads once, however many it repairs.
            rounds = min(2, len(damaged) // 2)
            size = len(damaged) // (2 * rounds)
            parts = [damaged[start : start + size] for start in range(0, len(damaged), size)]
            pairs = interleaved(
                lambda number: programs.repair(url, parts[2 * number]),
                lambda number: programs.update_states(url, parts[2 * number + 1]),
                rounds,
                warm=False,
            )
        ours, theirs = (f"{said} a thread" for said in pairs.said())
        what = f"`graph.update_state` a thread : repair; {len(damaged):,} damaged threads"
        return Row(what, ours, theirs, 1 / pairs.ratio, 5, at_least=True, why=EACH_CHECKED)

    def incremental(self, threads: int) -> Row:
        with self._stores.copy(Shape(threads)) as url:
            changed = max(1, threads // 1_000)
            programs.swept_store(url, changed)

            def audit(_: int) -> int:
                programs.incremental_audit(url)
                return threads

            pairs = interleaved(audit, lambda _: programs.walk(url), self._rounds)
        ours, theirs = (f"{said} a thread" for said in pairs.said())
        what = f"incremental audit, {changed:,} changed : bare walk over heads; {threads:,} threads"
        return Row(what, ours, theirs, pairs.ratio, 1.25, why=BEGINNING)

    def copying(self, threads: int) -> Row:
        source = self._stores.store(Shape(threads))

        def timed(program: Callable[[str, str], None]) -> float:
            with self._stores.empty() as target:
                began = time.perf_counter()
                program(source, target)
                return (time.perf_counter() - began) / threads

        rounds = max(1, self._rounds // 2)
        times = [(timed(programs.copied), timed(programs.dumped)) for _ in range(rounds)]
        pairs = Pairs(*map(list, zip(*times, strict=True)))
        ours, theirs = (f"{said} a thread" for said in pairs.said())
        what = f"`migrate copy` : `pg_dump` into `psql`; {threads:,} threads"
        return Row(what, ours, theirs, pairs.ratio, 1.5, why=READ_BACK)

    def memory(self, threads: int, more: int) -> list[Row]:
        few = programs.peak_memory(self._stores.store(Shape(threads))) / MEGABYTE
        many = programs.peak_memory(self._stores.store(Shape(more))) / MEGABYTE
        what = f"peak memory of the process, {more:,} threads : {threads:,}"
        ours, theirs = f"{many:.0f} MB", f"{few:.0f} MB"
        return [
            Row(what, ours, theirs, many / few, 1.2),
            Row(f"peak memory in MB, {more:,} threads", ours, "", many, 250),
        ]

    def jobs(self, threads: int) -> Row:
        url = self._stores.store(Shape(threads))
        pairs = interleaved(
            lambda _: self._audit(url, threads, jobs=2),
            lambda _: self._audit(url, threads, jobs=1),
            self._rounds,
        )
        ours, theirs = (f"{said} a head" for said in pairs.said())
        what = f"audit `--jobs 1` : `--jobs 2`, as processes; {threads:,} threads"
        return Row(what, ours, theirs, 1 / pairs.ratio, 1.5, at_least=True, why=SAME_CORES)

    def _audit(self, url: str, threads: int, *, jobs: int) -> int:
        programs.audit_command(url, "--jobs", str(jobs))
        return threads


def markdown(rows: Sequence[Row], command: str, server: str) -> str:
    """The table, with what it was measured on."""
    load = " ".join(f"{each:.1f}" for each in os.getloadavg())
    lines = [
        "# Speed and memory",
        "",
        (
            f"`{command}`, {datetime.now(UTC):%Y-%m-%d}, on {os.cpu_count()} cores "
            f"({platform.machine()}, {platform.system()}), Python {platform.python_version()}, "
            f"Postgres {server} on the same machine; load average at the end {load}."
        ),
        "",
        f"Threads have {CHECKPOINTS} checkpoints and 15 messages; 1 % died in a tool.",
        "",
        "| what | ours | the other | ratio | asked | |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        sign = "at least" if row.at_least else "at most"
        mark = "holds" if row.holds else "**missed**"
        lines.append(
            f"| {row.what} | {row.ours} | {row.theirs} | {row.ratio:.2f} "
            f"| {sign} {row.bound:g} | {mark} |"
        )
    if missed := [row for row in rows if not row.holds]:
        lines += ["", "Missed:", ""]
        lines += [f"- {row.what}: {row.short}. {row.why}".rstrip() for row in missed]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument(
        "--database-url", help="a server to make the stores on; else one is started"
    )
    parser.add_argument("--keep", type=Path, help="where a started server keeps the stores")
    parser.add_argument("--threads", type=int, default=2_000, help="threads of the smaller store")
    parser.add_argument("--more", type=int, default=20_000, help="threads of the larger store")
    parser.add_argument("--rounds", type=int, default=5, help="pairs of each measurement")
    parser.add_argument("--only", action="append", help="a measurement by name; repeatable")
    parser.add_argument("--output", type=Path, help=f"where the table goes ({RESULTS.name})")
    options = parser.parse_args(arguments)
    with stores(options.database_url, options.keep) as found:
        bench = Bench(found, options.rounds)
        few, more = options.threads, options.more
        measurements: dict[str, Callable[[], list[Row]]] = {
            "fetch": lambda: [bench.against_fetch(few), bench.against_fetch(more)],
            "get_tuple": lambda: [bench.against_get_tuple(few), bench.against_get_tuple(more)],
            "list": lambda: [bench.against_list(few)],
            "longer": lambda: [bench.longer_threads(few)],
            "update_state": lambda: [bench.against_update_state(few)],
            "incremental": lambda: [bench.incremental(few), bench.incremental(more)],
            "memory": lambda: bench.memory(few, more),
            "jobs": lambda: [bench.jobs(few), bench.jobs(more)],
            "copy": lambda: [bench.copying(few)],
        }
        rows: list[Row] = []
        for name, measure in measurements.items():
            if options.only and name not in options.only:
                continue
            for row in measure():
                rows.append(row)
                print(f"{row.what}: {row.ratio:.2f} ({row.ours}, {row.theirs})", flush=True)
        words = ["python", "-m", "tests.benchmarks.run", *(arguments or sys.argv[1:])]
        text = markdown(rows, shlex.join(_without_address(words)), found.server_version())
    (options.output or RESULTS).write_text(text, encoding="utf-8")
    print(text)
    return 0


def _without_address(words: Sequence[str]) -> list[str]:
    """The command without where the server and the files are, which is nobody's business."""
    shown: list[str] = []
    hidden = False
    for word in words:
        if not hidden and word not in ("--database-url", "--keep", "--output"):
            shown.append(word)
        hidden = word in ("--database-url", "--keep", "--output")
    return shown


if __name__ == "__main__":
    sys.exit(main())
