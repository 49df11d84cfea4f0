"""Counts as bars: the numbers that a chart's drawing needs."""

from collections.abc import Iterable
from dataclasses import dataclass

from repair_service.repair.verdict import Verdict
from repair_service.report.overview import AGES, UNKNOWN_AGE, Overview, Sums
from repair_service.report.table import printable
from repair_service.report.tally import Tally

MOST_BARS = 8
LONGEST_LABEL = 38
"""Characters that fit beside a count in a chart on a telephone."""

THINNEST = 0.8
"""Percent of the width: a bar of one among thousands is still seen."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar.

    Attributes:
        name: What is counted.
        label: The same, cut in the middle to LONGEST_LABEL characters.
        count: How many.
        width: Percent of the widest bar.
        style: A class name; empty for the common one.
    """

    name: str
    label: str
    count: int
    width: float
    style: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart.

    Attributes:
        name: An identifier.
        title: What is counted by what.
        bars: The bars from the top.
    """

    name: str
    title: str
    bars: tuple[Bar, ...]

    @property
    def description(self) -> str:
        """All of its numbers in words, for those who do not see it."""
        return "; ".join(f"{bar.name}: {bar.count:,}" for bar in self.bars) + "."


def charts_of(sums: Sums, overview: Overview) -> list[Chart]:
    """The charts that have something to show."""
    # Beside all the healthy ones the others would not be seen.
    verdicts = [
        (verdict.value, count)
        for verdict, count in sums.verdicts.items()
        if verdict is not Verdict.HEALTHY
    ]
    kinds = [(kind.value, count) for kind, count in overview.kinds.most_common()]
    ages = [name for _, name in AGES] + [UNKNOWN_AGE]
    # The ends without a count are left out, gaps between ages are not.
    seen = [place for place, name in enumerate(ages[:-1]) if overview.ages[name]]
    spanned = ages[seen[0] : seen[-1] + 1] if seen else []
    spanned += [UNKNOWN_AGE] if overview.ages[UNKNOWN_AGE] else []
    charts = [
        _chart("verdicts", "Heads that are not healthy, by verdict", verdicts, styled=True),
        _chart("kinds", "Faults by kind", kinds),
        _chart("tools", "Faults by tool", _ranked(overview.tools)),
        _chart("models", "Faults by model", _ranked(overview.models)),
        _chart("ages", "Faults by idle time", [(name, overview.ages[name]) for name in spanned]),
    ]
    return [chart for chart in charts if chart.bars]


def _ranked(tally: Tally) -> list[tuple[str, int]]:
    shown, others = tally.most_common(MOST_BARS)
    return [*shown, ("all others", others)] if others else shown


def _chart(
    name: str, title: str, counts: Iterable[tuple[str, int]], *, styled: bool = False
) -> Chart:
    said = [(printable(each), count) for each, count in counts]
    most = max((count for _, count in said), default=0)
    return Chart(
        name,
        title,
        tuple(
            Bar(
                name=each,
                label=_cut(each),
                count=count,
                width=round(max(100 * count / most, THINNEST), 2) if count else 0,
                style=each if styled and each in set(Verdict) else "",
            )
            for each, count in said
        ),
    )


def _cut(text: str) -> str:
    if len(text) <= LONGEST_LABEL:
        return text
    half = LONGEST_LABEL // 2
    return f"{text[:half]}…{text[-half + 1 :]}"
