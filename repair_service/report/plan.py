"""A saved plan for its readers."""

from typing import IO, Any

from repair_service.repair.diagnosis import Diagnosis
from repair_service.repair.verdict import Verdict
from repair_service.report.answer import Lines
from repair_service.report.table import TableReport, printable
from repair_service.sweep.plan import Plan, PlannedRepair


def write_plan_table(out: IO[str], plan: Plan) -> None:
    """Write a plan for people: what it is, and each head with what is to be written behind it."""
    lines, heading = Lines(out), plan.heading
    lines.line(f"Plan {heading.id}", "bold")
    made = heading.made_at.isoformat(timespec="seconds").replace("+00:00", "Z")
    lines.wrapped(
        f"Made {made} by repair-service {printable(heading.version)} for "
        f"{printable(heading.store)}, schema {printable(heading.schema)}."
    )
    allowed = ", ".join(sorted(heading.policy.allow))
    if allowed:
        lines.wrapped(f"It allows {printable(allowed)}.")
    table = TableReport(out)
    for item in plan.items:
        table.add(planned_diagnosis(item))
    count = len(plan.items)
    lines.line(f"{count} head{'' if count == 1 else 's'} to be written.")


def planned_diagnosis(item: PlannedRepair) -> Diagnosis:
    """The diagnosis that an item was made of, without its patch."""
    decision: dict[str, Any] = {"resume": item.resume, "route_source": item.route_source}
    return Diagnosis(
        thread_id=item.thread_id,
        checkpoint_ns=item.checkpoint_ns,
        checkpoint_id=item.checkpoint_id,
        verdict=Verdict.REPAIRABLE,
        reason=item.reason,
        faults=item.faults,
        route=item.route,
        **decision,
    )
