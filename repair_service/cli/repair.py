"""`repair THREAD`: one thread, now."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from repair_service.cli import options

if TYPE_CHECKING:
    from repair_service.cli.running import Outcome


def repair(
    context: typer.Context,
    thread_id: options.ThreadId,
    database_url: options.DatabaseUrl = None,
    schema: options.Schema = None,
    ledger_url: options.LedgerUrl = None,
    config: options.Config = None,
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
    statement_timeout: options.StatementTimeout = None,
    lock_timeout: options.LockTimeout = None,
    reason: options.Reason = None,
    dry_run: options.DryRun = None,
    format: options.ReportFormat = None,  # noqa: A002  # named as its flag
    output: options.Output = None,
    exit_zero: options.ExitZero = None,
    debug: options.Debug = False,
) -> None:
    """Repair one thread by its id.

    All of its namespaces are looked at, and each repairable one gets one new checkpoint. It does
    not ask: the thread was named. A thread that was active a moment ago is left alone unless
    --min-idle 0 says otherwise.

    \b
    Examples:
      repair-service repair 4711
      repair-service repair 4711 --dry-run
      repair-service repair 4711 --min-idle 0 --resume park

    \b
    Exit codes:
      0  nothing wrong, or repaired
      1  there is no such thread, or the store could not be read or written
      2  left as it is: manual, unreadable, active, moved on, or --dry-run
      3  the patch did not read back as healthy, and was rolled back
     64  wrong usage
    """
    from repair_service.cli.exits import exit_code
    from repair_service.cli.ledger import open_ledger
    from repair_service.cli.opening import open_output, open_report, open_store
    from repair_service.cli.recording import start_run
    from repair_service.cli.running import (
        audit_of,
        check_threads_exist,
        run_reported,
        sweep_of,
        wait_for_deploy,
    )
    from repair_service.cli.settings import LOAD_SETTINGS, load_settings
    from repair_service.cli.signals import Stop

    flags = context.params
    # What is for a sweep, in a file that both share, must not keep one thread from repair.
    of_sweeps = ("since", "namespace", "shard", "max_repairs", "max_ratio", "run_time")
    unbound = dict.fromkeys((*of_sweeps, *LOAD_SETTINGS))
    settings = load_settings(flags | {"thread": [thread_id]}).model_copy(update=unbound)
    writes = not settings.dry_run
    with (
        Stop() as stop,
        open_output(settings) as out,
        open_store(settings, writes=writes) as store,
        open_ledger(settings, store, writes=writes) as opened,
    ):
        report = open_report(settings, out)
        if writes:
            wait_for_deploy(settings)
        recording = start_run("repair", settings, opened, writes=writes)
        work = sweep_of if writes else audit_of
        outcome = run_reported(
            "repair",
            settings,
            stop,
            recording,
            work(settings, store, recording),
            report=report,
            advise=lambda outcome: _advise(outcome, flags, thread_id),
            earn=lambda totals: exit_code(
                totals.verdicts, exit_zero=settings.exit_zero, one_thread=True
            ),
        )
        check_threads_exist(settings, outcome)
    raise typer.Exit(int(outcome.code))


def _advise(outcome: "Outcome", flags: Mapping[str, Any], thread_id: str) -> str | None:
    """What to type after the repair of one thread."""
    from repair_service.cli.next_command import ACTIVITY, POLICY, STORE, next_command
    from repair_service.repair.verdict import Verdict

    first = outcome.first
    if Verdict.REPAIRABLE in first:
        return next_command("repair", flags, STORE + ACTIVITY + POLICY, thread_id)
    if Verdict.DRIFTED in first or Verdict.FAILED in first or Verdict.MANUAL in first:
        return next_command("show", flags, STORE + POLICY, thread_id)
    if Verdict.ACTIVE in first:
        now = dict(flags) | {"min_idle": "0"}
        return next_command("repair", now, (*STORE, "min_idle", *POLICY), thread_id)
    if Verdict.UNREADABLE in first:
        return next_command("doctor", flags, STORE)
    return None
