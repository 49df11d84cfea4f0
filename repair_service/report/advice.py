"""What an operator should do next about the heads of each verdict, and about the run itself."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from repair_service.ledger.records.run import Run
from repair_service.repair.verdict import Verdict
from repair_service.report.overview import GROUPS, Group, Overview, Sums
from repair_service.report.table import printable
from repair_service.report.wording import counted

MOST_REASONS = 6

EXIT_CODES = {
    0: "nothing wrong, or all of it repaired",
    1: "an error ended it",
    2: "faults were found, or left",
    3: "it failed in part, or a bound stopped it",
    4: "the plan was stale, or already applied",
    5: "a safety rail refused",
    11: "another run held the lock",
    64: "wrong usage",
    130: "stopped by Ctrl-C",
    143: "stopped by SIGTERM",
}


@dataclass(frozen=True, slots=True)
class Step:
    """What to do about the heads of one verdict.

    Attributes:
        verdict: The verdict.
        count: How many heads.
        meaning: What the verdict says.
        action: What to do.
        commands: What to type.
        group: The name of the verdict's group, under which its threads are listed.
        reasons: The most frequent reasons, with their counts; empty where they say nothing new.
        other_reasons: How many heads have other reasons.
    """

    verdict: Verdict
    count: int
    meaning: str
    action: str
    group: str
    commands: tuple[str, ...] = ()
    reasons: tuple[tuple[str, int], ...] = ()
    other_reasons: int = 0


@dataclass(frozen=True, slots=True)
class Guide:
    """What a verdict says, and what to do about it.

    Attributes:
        meaning: What it says.
        action: What to do.
        commands: What to type; `{run}` stands for the run's id.
    """

    meaning: str
    action: str
    commands: tuple[str, ...] = ()


GUIDES: Mapping[Verdict, Guide] = {
    Verdict.FAILED: Guide(
        meaning=(
            "The patch did not read back as healthy, so it was rolled back: nothing was written."
        ),
        action=(
            "Look at the thread, and report it to the makers of repair-service with this "
            "report. Do not write it by hand meanwhile."
        ),
        commands=("repair-service show THREAD",),
    ),
    Verdict.UNREADABLE: Guide(
        meaning="The thread's rows cannot be read, so nothing is ever written behind them.",
        action=(
            "Read the reason. A missing key can be set (LANGGRAPH_AES_KEY) and a newer release "
            "may know a newer type; a lost or pickled value can only come from a backup, or the "
            "user starts a new thread."
        ),
        commands=("repair-service doctor",),
    ),
    Verdict.MANUAL: Guide(
        meaning="Something is wrong that no default may mend.",
        action=(
            "Look at the thread, then decide. Where the reason names a switch and you agree "
            "with it, repair the thread with that switch."
        ),
        commands=(
            "repair-service show THREAD",
            "repair-service repair THREAD --dry-run --allow KIND",
        ),
    ),
    Verdict.REPAIRABLE: Guide(
        meaning="A patch would mend all faults; it is not written.",
        action=(
            "Write them: one new checkpoint behind each head, and no row that is there is changed."
        ),
        commands=("repair-service sweep",),
    ),
    Verdict.DRIFTED: Guide(
        meaning="The thread moved on while its patch was being written, so nothing was written.",
        action="Nothing now: the next sweep looks at the new head.",
    ),
    Verdict.REPAIRED: Guide(
        meaning="A new checkpoint stands behind each head, and was read back as healthy.",
        action=(
            "Let the users go on. A call with a placeholder may or may not have taken effect: "
            "check payments, mails and the like at the system that the tool calls. While a "
            "thread has not moved on, its patch can be taken back."
        ),
        commands=("repair-service undo --dry-run --run {run}",),
    ),
    Verdict.WAITING: Guide(
        meaning=(
            "A person or a client is to answer: an open question, a breakpoint, or a client's call."
        ),
        action="Nothing here. Answer in the application; a repair would take the question away.",
    ),
    Verdict.ACTIVE: Guide(
        meaning="The thread may be running now.",
        action="Nothing now: the next sweep looks at it again.",
    ),
}

TELLING_REASONS = (Verdict.FAILED, Verdict.UNREADABLE, Verdict.MANUAL, Verdict.WAITING)
"""The verdicts whose reasons say what to do; those of the others are all alike."""


def steps_of(run: Run, sums: Sums, overview: Overview) -> list[Step]:
    """What to do about each verdict that was found, the most pressing first."""
    return [
        _step(run, group, verdict, sums.verdicts[verdict], overview)
        for group in GROUPS
        for verdict in group.verdicts
        if verdict in GUIDES and sums.verdicts.get(verdict)
    ]


def _step(run: Run, group: Group, verdict: Verdict, count: int, overview: Overview) -> Step:
    guide = GUIDES[verdict]
    reasons: list[tuple[str, int]] = []
    others = 0
    if verdict in TELLING_REASONS and verdict in overview.reasons:
        reasons, others = overview.reasons[verdict].most_common(MOST_REASONS)
    return Step(
        verdict=verdict,
        count=count,
        meaning=guide.meaning,
        action=guide.action,
        group=group.name,
        commands=tuple(command.format(run=run.id) for command in guide.commands),
        reasons=tuple((printable(reason), number) for reason, number in reasons if reason),
        other_reasons=others,
    )


def headline(run: Run, sums: Sums) -> tuple[str, str]:
    """The outcome in one sentence, and its tone: `bad`, `open`, `good`."""
    person, sweep, repaired, *_ = (sums.of_group(group) for group in GROUPS)
    done = f"; {counted(repaired, 'head')} repaired" if repaired else ""
    if person:
        needs = "needs" if person == 1 else "need"
        left = f", {counted(sweep, 'other')} left for a sweep" if sweep else ""
        return f"{counted(person, 'head')} {needs} a person{left}{done}.", "bad"
    if sweep:
        return f"{counted(sweep, 'head')} left for a sweep{done}.", "open"
    if repaired:
        return f"{counted(repaired, 'damaged head')} repaired, and nothing is left.", "good"
    if run.finished_at is None or not run.complete:
        return "Nothing wrong was found as far as it came.", "open"
    return "Nothing is wrong.", "good"


def notes_of(run: Run, sums: Sums, overview: Overview) -> Iterator[str]:
    """What keeps the report from being the whole truth."""
    if run.finished_at is None:
        yield "This run has not ended: it goes on, or its process died. The numbers may be old."
    elif not run.complete:
        yield (
            "This run ended before it had looked at every head of its selection. "
            "Run it again to see the rest."
        )
    if overview.findings < sums.found:
        yield (
            f"The ledger keeps {overview.findings:,} of the {counted(sums.found, 'finding')} of "
            "this run; old ones are let go of. The threads, reasons, tools, models and ages below "
            "are of those that are kept."
        )
    if run.totals is None and run.finished_at is not None:
        yield "The run recorded no totals; the numbers are those of its findings."
