"""`apply FILE`: exactly what a saved plan says, once."""

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import typer

from repair_service.cli import options

if TYPE_CHECKING:
    from repair_service.cli.exits import ExitCode
    from repair_service.cli.ledger import OpenLedger
    from repair_service.cli.recording import Recording
    from repair_service.cli.running import Begin, Moved, Outcome, Work
    from repair_service.cli.settings import Settings
    from repair_service.ledger.records.base import Cursor
    from repair_service.repair.diagnosis import Diagnosis
    from repair_service.store.gateway import Store
    from repair_service.sweep.plan import Plan
    from repair_service.sweep.throttle import Throttle
    from repair_service.sweep.totals import Totals


def apply(
    context: typer.Context,
    plan_file: options.PlanFile,
    database_url: options.DatabaseUrl = None,
    schema: options.Schema = None,
    ledger_url: options.LedgerUrl = None,
    config: options.Config = None,
    reason: options.Reason = None,
    rate: options.Rate = None,
    max_lag: options.MaxLag = None,
    max_active: options.MaxActive = None,
    throttle_query: options.ThrottleQuery = None,
    pause_file: options.PauseFile = None,
    statement_timeout: options.StatementTimeout = None,
    lock_timeout: options.LockTimeout = None,
    yes: options.Yes = None,
    format: options.ReportFormat = None,  # noqa: A002  # named as its flag
    output: options.Output = None,
    debug: options.Debug = False,
) -> None:
    """Write what a plan says, and nothing else.

    Each head is judged again by the plan's own policy and time. One that is not as the plan says
    is left alone, and the report says which part of it is not. On a terminal it first shows the
    plan and asks; elsewhere it needs --yes. A plan is applied once.

    \b
    Examples:
      repair-service show plan.json
      repair-service apply plan.json
      repair-service apply plan.json --yes --reason "ticket 4711"

    \b
    Exit codes:
      0  all of it was written
      1  the store could not be read or written
      2  a thread of it is in quarantine by now
      3  a patch did not read back as healthy, and was rolled back
      4  heads are not as planned (the others were written), or applied before
      5  refused: no terminal to ask on, and no --yes
     64  wrong usage, or no plan
    130, 143  stopped by Ctrl-C or SIGTERM, after the thread at hand
    """
    from repair_service.cli.settings import load_settings
    from repair_service.sweep.plan import read_plan

    plan = read_plan(plan_file)
    # The plan says which schema; a flag is for a copy of the store in another one.
    flags = {"schema": plan.heading.schema} | {
        name: value for name, value in context.params.items() if value is not None
    }
    # It reads the primary alone, whatever the file that it shares with sweep says.
    settings = load_settings(flags).model_copy(update={"read_url": None})
    raise typer.Exit(_apply(settings, plan, flags))


def _apply(settings: "Settings", plan: "Plan", flags: Mapping[str, Any]) -> int:
    from repair_service.cli.asking import need_answer
    from repair_service.cli.exits import ExitCode
    from repair_service.cli.ledger import check_reason, open_ledger
    from repair_service.cli.opening import (
        checked_throttle,
        open_output,
        open_report,
        open_store,
    )
    from repair_service.cli.running import run_reported
    from repair_service.cli.signals import Stop

    check_reason(settings, writes=True)
    need_answer("apply", settings.yes, "show FILE shows what would be written")
    with (
        Stop() as stop,
        open_output(settings) as out,
        open_store(settings, writes=True) as store,
        open_ledger(settings, store, writes=True) as opened,
    ):
        store.check_writable(migrates=plan.heading.policy.migration is not None)
        report = open_report(settings, out)
        if said := _used(plan, opened):
            return _refuse(said)
        if not settings.yes and not _agreed(plan):
            return int(ExitCode.FAULTS)
        recording = _start(settings, plan, opened)
        if opened is not None and not opened.ledger.plans.use(
            str(plan.heading.id), recording.run_id
        ):
            recording.close({}, exit_code=ExitCode.STALE, complete=False)
            return _refuse(_used(plan, opened) or "This plan was applied before.")
        outcome = run_reported(
            "apply",
            settings,
            stop,
            recording,
            _application(store, plan, recording, checked_throttle(settings, store)),
            report=report,
            advise=lambda outcome: _advise(outcome, flags),
            earn=_earned,
        )
        return int(outcome.code)


def _application(
    store: "Store", plan: "Plan", recording: "Recording", throttle: "Throttle"
) -> "Begin":
    """The plan as a run's work."""
    from repair_service.sweep.plan import apply_plan
    from repair_service.sweep.totals import Totals

    class Application:
        """Counts what is applied."""

        def __init__(self) -> None:
            self.totals = Totals()
            self.stopped_by: str | None = None
            self.refused = False
            self.complete = True
            self.cursor: Cursor | None = None

        def rest(self) -> "Iterator[Diagnosis]":
            return iter(())

        def outcomes(self, moved: "Moved") -> "Iterator[Diagnosis]":
            threads: set[str] = set()

            def wait() -> None:
                throttle.wait(self.totals, moved)

            for diagnosis in apply_plan(store, plan, recording.record, wait):
                threads.add(diagnosis.thread_id)
                self.totals.threads = len(threads)
                self.totals.heads += 1
                self.totals.share = self.totals.heads / len(plan.items)
                self.totals.count(diagnosis)
                throttle.looked_at(1)
                yield diagnosis
                moved(self.totals)

    def begin(moved: "Moved") -> "tuple[Work, Iterator[Diagnosis]]":
        application = Application()
        return application, application.outcomes(moved)

    return begin


def _start(settings: "Settings", plan: "Plan", opened: "OpenLedger | None") -> "Recording":
    from dataclasses import asdict

    from repair_service.cli.recording import start_run

    heading = plan.heading
    return start_run(
        "apply",
        settings,
        opened,
        writes=True,
        selection={"plan": heading.id, "made_at": heading.made_at, "heads": len(plan.items)},
        policy={**asdict(heading.policy), "active_query": heading.active_query},
    )


def _agreed(plan: "Plan") -> bool:
    """Show the plan on stderr, and ask."""
    from repair_service.cli.asking import agreed
    from repair_service.report.plan import write_plan_table

    write_plan_table(sys.stderr, plan)
    return agreed("Write?")


def _used(plan: "Plan", opened: "OpenLedger | None") -> str | None:
    """The sentence for a plan that was applied before; None where the ledger knows of no use."""
    use = opened.ledger.plans.used(str(plan.heading.id)) if opened is not None else None
    if use is None:
        return None
    from repair_service.cli.times import say_time

    run = f" by run {use.run_id}" if use.run_id else ""
    return f"This plan was applied at {say_time(use.applied_at.timestamp())}{run}; make a new one."


def _refuse(said: str) -> int:
    from repair_service.cli.exits import ExitCode

    print(f"repair-service: {said}", file=sys.stderr)
    return int(ExitCode.STALE)


def _earned(totals: "Totals") -> "ExitCode":
    from repair_service.cli.exits import ExitCode
    from repair_service.repair.verdict import Verdict

    if totals.verdicts[Verdict.FAILED]:
        return ExitCode.PARTLY_FAILED
    if totals.verdicts[Verdict.DRIFTED]:
        return ExitCode.STALE
    return ExitCode.FAULTS if totals.verdicts[Verdict.MANUAL] else ExitCode.OK


def _advise(outcome: "Outcome", flags: Mapping[str, Any]) -> str | None:
    """What to type after a plan was applied."""
    from repair_service.cli.next_command import LEDGER, STORE, next_command
    from repair_service.repair.verdict import Verdict

    if outcome.totals.verdicts[Verdict.DRIFTED]:
        return next_command("plan", {**flags, "out": "FILE"}, (*STORE, *LEDGER, "out"))
    if Verdict.FAILED in outcome.first:
        return next_command("show", flags, STORE, outcome.first[Verdict.FAILED].thread_id)
    return None
