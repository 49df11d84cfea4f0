"""One finding in the words of a report for people: faults, evidence and decision, no content."""

from collections import Counter
from dataclasses import dataclass

from repair_service.ledger.records.finding import Finding
from repair_service.repair.durations import said_duration
from repair_service.repair.verdict import Fault, Mend, RouteSource, Verdict
from repair_service.report.table import printable
from repair_service.report.wording import counted, said_time

MOST_FAULTS = 6
"""Faults of a thread that are shown one by one."""

MENDS: dict[Mend, str] = {
    "placeholder": "placeholder",
    "salvage": "real result taken up",
    "move": "result moved behind its call",
    "remove": "result removed",
    "none": "",
}

SOURCES: dict[RouteSource, str] = {
    "sibling": "learned from another task of the same step",
    "history": "learned from this thread's history",
    "fleet": "learned from other threads of this store",
    "declared": "declared by the operator",
}

PATCHED = (Verdict.REPAIRABLE, Verdict.REPAIRED)
"""The verdicts with a patch that is to be written, or stands."""


@dataclass(frozen=True, slots=True)
class FaultRow:
    """One fault.

    Attributes:
        kind: Its kind.
        tool, model, call_id: Of the call; empty where the rows do not say.
        place: Where it stands: `messages, message 3`.
        mend: What the patch does about it; empty for nothing.
    """

    kind: str
    tool: str
    model: str
    call_id: str
    place: str
    mend: str


@dataclass(frozen=True, slots=True)
class Row:
    """One finding; all text is free of control characters, and not yet escaped.

    Attributes:
        thread_id, namespace, checkpoint_id: The head.
        verdict: The verdict.
        faults: The first MOST_FAULTS of its faults.
        more_faults: The others, counted by kind; empty for none.
        evidence: What the verdict rests on, each with its name.
        reason: Why.
        written: What the patch puts where, in sentences; empty where there is none.
        patch_id: The patch's checkpoint, planned or written.
    """

    thread_id: str
    namespace: str
    checkpoint_id: str
    verdict: str
    faults: tuple[FaultRow, ...]
    more_faults: str
    evidence: tuple[tuple[str, str], ...]
    reason: str
    written: tuple[str, ...]
    patch_id: str


def row_of(finding: Finding) -> Row:
    """The row for a finding."""
    patched = finding.verdict in PATCHED
    return Row(
        thread_id=printable(finding.thread_id) or "(empty)",
        namespace=printable(finding.checkpoint_ns),
        checkpoint_id=printable(finding.checkpoint_id),
        verdict=finding.verdict.value,
        faults=tuple(_fault_row(fault, patched) for fault in finding.faults[:MOST_FAULTS]),
        more_faults=said_kinds(finding.faults[MOST_FAULTS:]),
        evidence=tuple(_evidence(finding)),
        reason=printable(finding.reason),
        written=_written(finding) if patched else (),
        patch_id=printable(finding.new_checkpoint_id or "") if patched else "",
    )


def said_kinds(faults: tuple[Fault, ...]) -> str:
    """Faults counted by kind: `2 unanswered_call, 1 orphan_result`; empty for none."""
    kinds = Counter(fault.kind.value for fault in faults)
    return ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())


def _fault_row(fault: Fault, patched: bool) -> FaultRow:
    return FaultRow(
        kind=fault.kind.value,
        tool=printable(fault.tool_name or ""),
        model=printable(fault.model or ""),
        call_id=printable(fault.tool_call_id or ""),
        place=printable(fault.channel)
        if fault.message_index is None
        else f"{printable(fault.channel)}, message {fault.message_index}",
        mend=MENDS[fault.mend] if patched else "",
    )


def _evidence(finding: Finding) -> list[tuple[str, str]]:
    facts = []
    if finding.idle_seconds is not None:
        facts.append(("Idle", said_duration(finding.idle_seconds)))
    if finding.head_at is not None:
        facts.append(("Head at", said_time(finding.head_at)))
    pending = ", ".join(printable(node) for node in finding.pending)
    facts.append(("Pending", pending or "no node"))
    if finding.interrupts:
        open_ones = counted(finding.interrupts, "interrupt")
        facts.append(("Questions", f"{open_ones} without an answer"))
    if finding.route or finding.route_source:
        route = ", ".join(printable(node) for node in finding.route) or "the graph's end"
        source = f", {SOURCES[finding.route_source]}" if finding.route_source else ""
        facts.append(("Route", route + source))
    return facts


def _written(finding: Finding) -> tuple[str, ...]:
    """What the patch does, in the tense of the verdict, and where the thread goes on."""
    mends = Counter(fault.mend for fault in finding.faults)
    parts = [
        counted(mends["salvage"], "real result taken up", "real results taken up"),
        counted(mends["placeholder"], "placeholder"),
        counted(mends["move"], "result moved", "results moved"),
        counted(mends["remove"], "result removed", "results removed"),
    ]
    done = ", ".join(part for part in parts if not part.startswith("0 "))
    tense = "Written" if finding.verdict is Verdict.REPAIRED else "To write"
    said = (f"{tense}: {done}." if done else "", _resumed(finding))
    return tuple(sentence for sentence in said if sentence)


def _resumed(finding: Finding) -> str:
    match finding.resume:
        case "continue":
            nodes = ", ".join(printable(node) for node in finding.route) or "its end"
            return f"Goes on at {nodes}."
        case "park":
            return "Parked: no task pending, ready for a new message."
        case "keep":
            return "Its pending tasks stay as they are."
        case _:
            return ""
