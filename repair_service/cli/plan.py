"""`plan`: an audit whose decisions are saved in a file, to be read and applied."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from repair_service.cli import options

if TYPE_CHECKING:
    from repair_service.cli.running import Outcome
    from repair_service.cli.settings import Settings
    from repair_service.repair.diagnosis import Diagnosis
    from repair_service.report.document import Ending, Report
    from repair_service.sweep.plan import PlanHeading


def plan(
    context: typer.Context,
    out: options.Out,
    database_url: options.DatabaseUrl = None,
    schema: options.Schema = None,
    ledger_url: options.LedgerUrl = None,
    config: options.Config = None,
    thread: options.Thread = None,
    namespace: options.Namespace = None,
    since: options.Since = None,
    shard: options.Shard = None,
    full: options.Full = None,
    min_idle: options.MinIdle = None,
    deployed_at: options.DeployedAt = None,
    settle: options.Settle = None,
    active_query: options.ActiveQuery = None,
    breakpoint: options.Breakpoint = None,  # noqa: A002  # named as its flag
    infer_breakpoints: options.InferBreakpoints = None,
    client_tool: options.ClientTool = None,
    tool_node: options.ToolNode = None,
    nodes: options.Nodes = None,
    resume: options.Resume = None,
    route: options.Route = None,
    allow: options.Allow = None,
    last: options.Last = None,
    rate: options.Rate = None,
    max_lag: options.MaxLag = None,
    max_active: options.MaxActive = None,
    throttle_query: options.ThrottleQuery = None,
    pause_file: options.PauseFile = None,
    read_url: options.AuditReadUrl = None,
    statement_timeout: options.StatementTimeout = None,
    lock_timeout: options.LockTimeout = None,
    reason: options.Reason = None,
    format: options.ReportFormat = None,  # noqa: A002  # named as its flag
    output: options.Output = None,
    exit_zero: options.ExitZero = None,
    debug: options.Debug = False,
) -> None:
    """Save what sweep would write, to be read and applied later. Writes nothing else.

    The file is JSON without content of any message. It pins each head, its pending writes, its
    faults and what is decided; apply does exactly that, once, and refuses what is no longer so.

    \b
    Examples:
      repair-service plan --out plan.json
      repair-service show plan.json
      repair-service apply plan.json

    \b
    Exit codes:
      0  nothing wrong (waiting and active threads are not wrong)
      1  the store could not be read; no plan was written
      2  faults found; those that can be repaired are in the plan
     64  wrong usage
    """
    from repair_service.cli.settings import load_settings

    raise typer.Exit(write_plan_of("plan", load_settings(context.params), context.params, out))


def write_plan_of(verb: str, settings: "Settings", flags: Mapping[str, Any], path: Path) -> int:
    """The whole of a verb that saves what would be written.

    Args:
        verb: The verb, for the report.
        settings: The settings.
        flags: The flags by name.
        path: Where the plan is written to.

    Returns:
        The exit code.
    """
    from repair_service.cli.incremental import scope_of
    from repair_service.cli.ledger import open_ledger
    from repair_service.cli.opening import open_output, open_replica, open_report, open_store
    from repair_service.cli.recording import start_run
    from repair_service.cli.running import audit_of, check_threads_exist, run_reported
    from repair_service.cli.signals import Stop

    _check_writable(path)
    # A plan of a part is none, so that what bounds a sweep in a file that both share is not asked.
    settings = settings.model_copy(update={"run_time": None})
    with (
        Stop() as stop,
        open_output(settings) as out,
        open_store(settings, writes=False) as store,
        open_replica(settings, store) as replica,
        open_ledger(settings, store, writes=False, looks=True) as opened,
    ):
        heading = _heading(settings)
        report = _Planning(open_report(settings, out), path, heading)
        scope = scope_of(verb, settings, opened)
        recording = start_run(verb, settings, opened, writes=False, scope=scope, replica=replica)
        outcome = run_reported(
            verb,
            settings,
            stop,
            recording,
            # Judged again when it is applied, by the same time.
            audit_of(settings, replica or store, recording, now=heading.made_at.timestamp),
            report=report,
            advise=lambda outcome: _advise(outcome, flags, path),
        )
        check_threads_exist(settings, outcome)
        return int(outcome.code)


class _Planning:
    """A report that also keeps what is repairable, and writes the plan before it ends."""

    def __init__(self, report: "Report", path: Path, heading: "PlanHeading") -> None:
        from repair_service.sweep.plan import PlannedRepair

        self._report = report
        self._path = path
        self._heading = heading
        self._items: list[PlannedRepair] = []

    def add(self, diagnosis: "Diagnosis") -> None:
        """Report one head, and plan it where it is repairable."""
        from repair_service.repair.verdict import Verdict
        from repair_service.sweep.plan import PlannedRepair

        if diagnosis.verdict is Verdict.REPAIRABLE:
            self._items.append(PlannedRepair.of(diagnosis))
        self._report.add(diagnosis)

    def end(self, ending: "Ending") -> None:
        """Write the plan of a run that came to its end, then the report's ending."""
        import sys

        from repair_service.sweep.plan import write_plan

        if ending.exit_code in (0, 2):
            # A file that is there is a whole plan, whatever happens meanwhile.
            partial = self._path.with_name(self._path.name + ".partial")
            count = write_plan(partial, self._heading, self._items)
            os.replace(partial, self._path)
            print(f"{self._path}: {count} to be written.", file=sys.stderr)
        self._report.end(ending)


def _heading(settings: "Settings") -> "PlanHeading":
    from datetime import UTC, datetime
    from uuid import uuid4

    from repair_service import __version__
    from repair_service.cli.opening import store_address
    from repair_service.store.failures import read_address
    from repair_service.sweep.plan import PlanHeading

    return PlanHeading(
        id=uuid4(),
        made_at=datetime.now(UTC),
        version=__version__,
        store=read_address(store_address(settings)).text,
        schema=settings.store_schema,
        policy=settings.policy(),
        active_query=settings.active_query,
    )


def _check_writable(path: Path) -> None:
    """Refuse a place that cannot be written before the store is looked at.

    Raises:
        UsageError: It is a directory, or in none that can be written.
    """
    from repair_service.errors import UsageError

    parent = path.parent
    if path.is_dir() or not parent.is_dir() or not os.access(parent, os.W_OK):
        raise UsageError(f"--out {path} cannot be written: name a file in a directory that can be.")


def _advise(outcome: "Outcome", flags: Mapping[str, Any], path: Path) -> str | None:
    from repair_service.cli.audit import advise
    from repair_service.cli.next_command import LEDGER, LOAD, STORE, next_command
    from repair_service.repair.verdict import Verdict

    if outcome.totals.verdicts[Verdict.REPAIRABLE]:
        return next_command("apply", flags, STORE + LEDGER + LOAD, str(path))
    return advise(outcome, flags)
