"""What is counted of a past run: by its own totals, and by the findings that are kept of it."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from repair_service.ledger.records.finding import Finding
from repair_service.ledger.records.run import Run
from repair_service.repair.verdict import Fault, FaultKind, Verdict
from repair_service.report.tally import Tally
from repair_service.report.wording import counted

FindingsAnew = Callable[[], Iterable[Finding]]
"""Gives all of a run's findings from the start, each time it is called."""

AGES = (
    (600.0, "under 10 minutes"),
    (3600.0, "10 minutes to 1 hour"),
    (86_400.0, "1 to 24 hours"),
    (7 * 86_400.0, "1 to 7 days"),
    (30 * 86_400.0, "7 to 30 days"),
    (float("inf"), "over 30 days"),
)
"""Ages by their upper ends, in seconds."""

UNKNOWN_AGE = "not known"
NO_TOOL = "(no name recorded)"
NO_MODEL = "(not recorded)"


@dataclass(frozen=True, slots=True)
class Group:
    """Verdicts that ask the same of an operator.

    Attributes:
        name: An identifier.
        title: Its heading.
        verdicts: The verdicts, the most pressing first.
    """

    name: str
    title: str
    verdicts: tuple[Verdict, ...]


GROUPS = (
    Group("person", "Needs a person", (Verdict.FAILED, Verdict.UNREADABLE, Verdict.MANUAL)),
    Group("sweep", "Left for a sweep", (Verdict.REPAIRABLE, Verdict.DRIFTED)),
    Group("repaired", "Repaired", (Verdict.REPAIRED,)),
    Group("alone", "Rightly left alone", (Verdict.WAITING, Verdict.ACTIVE)),
    Group("healthy", "Healthy", (Verdict.HEALTHY,)),
)
"""All verdicts, in the order in which an operator needs to see them."""


@dataclass(slots=True)
class Overview:
    """Counts over a run's findings, in memory that does not grow with them.

    Attributes:
        findings: How many findings are kept.
        verdicts: Findings by verdict.
        kinds, tools, models, ages: Faults by kind, tool, model, and idle time of their thread;
            those of waiting heads aside, as in a run's totals.
        reasons: Findings by reason, for each verdict.
        mends: Faults of repairable and repaired heads, by what their patch does about them.
    """

    findings: int = 0
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    kinds: Counter[FaultKind] = field(default_factory=Counter)
    tools: Tally = field(default_factory=Tally)
    models: Tally = field(default_factory=Tally)
    ages: Counter[str] = field(default_factory=Counter)
    reasons: dict[Verdict, Tally] = field(default_factory=dict)
    mends: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> "Overview":
        """Count all of the findings."""
        overview = cls()
        for finding in findings:
            overview._add(finding)
        return overview

    def _add(self, finding: Finding) -> None:
        self.findings += 1
        self.verdicts[finding.verdict] += 1
        self.reasons.setdefault(finding.verdict, Tally()).add(finding.reason)
        age = age_of(finding.idle_seconds)
        patched = finding.verdict in (Verdict.REPAIRABLE, Verdict.REPAIRED)
        for fault in finding.faults:
            if finding.verdict is not Verdict.WAITING:
                self._add_fault(fault, age)
            if patched:
                self.mends[fault.mend] += 1

    def _add_fault(self, fault: Fault, age: str) -> None:
        self.kinds[fault.kind] += 1
        self.tools.add(fault.tool_name or NO_TOOL)
        self.models.add(fault.model or NO_MODEL)
        self.ages[age] += 1


def age_of(idle_seconds: float | None) -> str:
    """The age that an idle time falls into."""
    if idle_seconds is None:
        return UNKNOWN_AGE
    return next(name for end, name in AGES if idle_seconds < end or end == float("inf"))


@dataclass(frozen=True, slots=True)
class Sums:
    """The totals of a run, of all heads that it saw.

    Attributes:
        threads, heads: How many were looked at; None where the run never said.
        verdicts: Heads by verdict, in the order of GROUPS; only what was seen.
        faults: How many faults.
        salvaged, placeholders: Results that patches take up, or make up.
    """

    threads: int | None
    heads: int | None
    verdicts: Mapping[Verdict, int]
    faults: int
    salvaged: int
    placeholders: int

    @classmethod
    def of(cls, run: Run, overview: Overview) -> "Sums":
        """The run's own totals, and what its findings say where they say more.

        A run that goes on, or died, said its totals last some time ago, or never. Findings may have
        been let go of since, so they may say less.
        """
        said = run.totals or {}
        by_verdict, by_kind = _mapping(said, "verdicts"), _mapping(said, "faults")
        verdicts = {
            verdict: most
            for group in GROUPS
            for verdict in group.verdicts
            if (most := max(_count(by_verdict, verdict.value) or 0, overview.verdicts[verdict]))
        }
        faults = sum(_count(by_kind, kind.value) or 0 for kind in FaultKind)
        return cls(
            threads=_count(said, "threads"),
            heads=_count(said, "heads"),
            verdicts=verdicts,
            faults=max(faults, overview.kinds.total()),
            salvaged=_first(_count(said, "salvaged"), overview.mends["salvage"]),
            placeholders=_first(_count(said, "placeholders"), overview.mends["placeholder"]),
        )

    def of_group(self, group: Group) -> int:
        """How many heads have one of its verdicts."""
        return sum(self.verdicts.get(verdict, 0) for verdict in group.verdicts)

    @property
    def results(self) -> str:
        """What patches put in, or would; empty for nothing."""
        parts = [
            counted(self.salvaged, "salvaged result") if self.salvaged else "",
            counted(self.placeholders, "placeholder") if self.placeholders else "",
        ]
        return ", ".join(part for part in parts if part)

    @property
    def found(self) -> int:
        """How many heads were not healthy."""
        return sum(n for verdict, n in self.verdicts.items() if verdict is not Verdict.HEALTHY)


def _mapping(said: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = said.get(name)
    return value if isinstance(value, Mapping) else {}


def _count(said: Mapping[str, Any], name: str) -> int | None:
    value = said.get(name)
    return value if isinstance(value, int) else None


def _first(said: int | None, counted: int) -> int:
    return counted if said is None else said
