"""What the status page says, from what the worker and the ledger know."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from repair_service.ledger.records.run import Run
from repair_service.ledger.records.summary import LastWhole, StoreSummary
from repair_service.repair.durations import said_duration
from repair_service.report.advice import EXIT_CODES
from repair_service.report.overview import GROUPS
from repair_service.report.runs import said_totals
from repair_service.report.table import printable
from repair_service.report.wording import counted
from repair_service.worker.http.probes import unready
from repair_service.worker.state import StoreState, WorkerState

REFRESH_SECONDS = 5
"""How often the page loads itself again while something runs."""

LONGEST_RUN = timedelta(hours=6)
"""A run without an end that began earlier is taken for one whose process died."""

MOST_TOOLS = 4

OUTCOMES = {
    0: ("repaired", "done"),
    2: ("repairable", "faults left"),
    3: ("manual", "in part"),
    4: ("drifted", "stale"),
    5: ("manual", "refused"),
    130: ("drifted", "stopped"),
    143: ("drifted", "stopped"),
}
FAILED = ("failed", "failed")
"""Style and word by exit code; the report says the rest."""

PLAIN = frozenset({0, 2})
"""Exit codes whose word says enough."""

Summaries = Mapping[str, StoreSummary]


@dataclass(frozen=True, slots=True)
class Tile:
    """A number with its name.

    Attributes:
        name: What is counted.
        value: How many, as text.
        style: A class name; `none` for a zero.
    """

    name: str
    value: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class StoreCard:
    """One store.

    Attributes:
        state: What the worker knows of it.
        whole: The last look at all of it.
        tiles: Its numbers; empty where it was never looked at as a whole.
        tools: The tools with most faults.
    """

    state: StoreState
    whole: LastWhole | None
    tiles: tuple[Tile, ...]
    tools: str


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run of the ledger.

    Attributes:
        run: The run.
        style, word: How it ended.
        meaning: What its exit code means, where the word does not say it.
        took: How long; empty while it goes on.
        counted: What it counted.
        has_report: Whether it looked at heads.
    """

    run: Run
    style: str
    word: str
    meaning: str
    took: str
    counted: str
    has_report: bool


def headline(state: WorkerState, summaries: Summaries | None) -> tuple[str, str]:
    """The worker in one sentence, and its tone: `bad`, `open`, `busy` or `good`."""
    if state.ledger_problem is not None or summaries is None:
        return "The ledger cannot be used.", "bad"
    if ill := [store.name for store in state.stores if store.problem is not None]:
        return f"{counted(len(ill), 'store')} cannot be worked with: {', '.join(ill)}.", "bad"
    if state.leader is None:
        return "No replica holds the lease, so no schedule runs.", "bad"
    if state.running:
        return " ".join(f"{_a(each.verb)} of {each.store} runs." for each in state.running), "busy"
    if state.paused:
        return "The schedules are paused.", "open"
    return _findings(summaries)


def _a(verb: str) -> str:
    return f"{'An' if verb[0] in 'aeiou' else 'A'} {verb}"


def _findings(summaries: Summaries) -> tuple[str, str]:
    wholes = [each.whole for each in summaries.values() if each.whole is not None]
    if not wholes:
        return "No store has been looked at as a whole yet.", "open"
    person, sweep = (sum(_of_group(whole, number) for whole in wholes) for number in (0, 1))
    if person:
        needs = "needs" if person == 1 else "need"
        left = f", {counted(sweep, 'other')} left for a sweep" if sweep else ""
        return f"{counted(person, 'head')} {needs} a person{left}.", "bad"
    if sweep:
        return f"{counted(sweep, 'head')} left for a sweep.", "open"
    return "Nothing is wrong.", "good"


def notes(state: WorkerState, summaries: Summaries | None) -> Iterator[str]:
    """What is wrong with the worker itself, each with its remedy; the stores say it of theirs."""
    yield from unready(replace(state, stores=()))
    if summaries is None and state.ledger_problem is None:
        yield "The ledger did not answer, so this page shows neither findings nor runs. Try again."
    if state.paused:
        yield "Nothing is started on a schedule, on any replica, until somebody resumes it."


def cards(state: WorkerState, summaries: Summaries, now: datetime) -> list[StoreCard]:
    """The stores of the settings."""
    return [_card(store, summaries.get(store.name), now) for store in state.stores]


def _card(store: StoreState, summary: StoreSummary | None, now: datetime) -> StoreCard:
    if summary is None or summary.whole is None:
        return StoreCard(store, None, (), "")
    whole = summary.whole
    named = [share for share in whole.tools if share.name is not None]
    return StoreCard(
        state=store,
        whole=whole,
        tiles=tuple(_tiles(summary, whole, now)),
        tools=", ".join(
            f"{printable(share.name or '')} {share.count:,}" for share in named[:MOST_TOOLS]
        ),
    )


def _tiles(summary: StoreSummary, whole: LastWhole, now: datetime) -> Iterator[Tile]:
    yield Tile(f"heads looked at, of {counted(whole.threads, 'thread')}", f"{whole.heads:,}")
    for number, group in enumerate(GROUPS):
        count = _of_group(whole, number)
        if group.name in ("repaired", "healthy"):
            continue
        yield Tile(group.title.lower(), f"{count:,}", group.name if count else "none")
        if group.name == "sweep" and whole.oldest_repairable is not None:
            age = said_duration((now - whole.oldest_repairable).total_seconds())
            yield Tile("the oldest that is left", age, group.name)
    put_in = [
        counted(summary.salvaged, "salvaged result"),
        counted(summary.placeholders, "placeholder"),
    ]
    said = ", ".join(part for part in put_in if not part.startswith("0 "))
    name = f"{'repair' if summary.repairs == 1 else 'repairs'} so far{f': {said}' if said else ''}"
    yield Tile(name, f"{summary.repairs:,}", "repaired" if summary.repairs else "none")
    if summary.quarantined:
        yield Tile("in quarantine", f"{summary.quarantined:,}", "person")


def _of_group(whole: LastWhole, number: int) -> int:
    return sum(whole.verdicts.get(verdict.value, 0) for verdict in GROUPS[number].verdicts)


def run_rows(runs: Sequence[Run], now: datetime) -> list[RunRow]:
    """The runs, as they are listed."""
    return [_row(run, now) for run in runs]


def _row(run: Run, now: datetime) -> RunRow:
    if run.finished_at is None:
        style, word = ("waiting", "runs") if _may_run(run, now) else ("drifted", "no end")
        return RunRow(run, style, word, "", "", said_totals(run), run.verb != "undo")
    code = run.exit_code
    style, word = OUTCOMES.get(code, FAILED) if code is not None else FAILED
    return RunRow(
        run=run,
        style=style,
        word=word,
        meaning="" if code is None or code in PLAIN else _meaning(code),
        took=said_duration((run.finished_at - run.started_at).total_seconds()),
        counted=said_totals(run),
        has_report=run.verb != "undo",
    )


def _meaning(code: int) -> str:
    return f"exit {code}: {EXIT_CODES[code]}" if code in EXIT_CODES else f"exit {code}"


def refreshes(state: WorkerState, runs: Sequence[Run], now: datetime) -> bool:
    """Whether something runs, here or on another replica, so that the page is old soon."""
    return bool(state.running) or any(_may_run(run, now) for run in runs)


def _may_run(run: Run, now: datetime) -> bool:
    return run.finished_at is None and now - run.started_at < LONGEST_RUN
