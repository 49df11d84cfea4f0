"""`sweep`: an audit that writes every repairable head."""

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import typer

from repair_service.cli import options
from repair_service.cli.audit import advise

if TYPE_CHECKING:
    from repair_service.cli.recording import Recording
    from repair_service.cli.running import Outcome
    from repair_service.cli.settings import Settings
    from repair_service.cli.signals import Stop
    from repair_service.store.gateway import Store


def sweep(
    context: typer.Context,
    database_url: options.DatabaseUrl = None,
    schema: options.Schema = None,
    ledger_url: options.LedgerUrl = None,
    config: options.Config = None,
    thread: options.Thread = None,
    namespace: options.Namespace = None,
    since: options.Since = None,
    shard: options.Shard = None,
    full: options.Full = None,
    jobs: options.Jobs = None,
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
    max_repairs: options.MaxRepairs = None,
    max_ratio: options.MaxRatio = None,
    rate: options.Rate = None,
    max_lag: options.MaxLag = None,
    max_active: options.MaxActive = None,
    throttle_query: options.ThrottleQuery = None,
    pause_file: options.PauseFile = None,
    read_url: options.ReadUrl = None,
    statement_timeout: options.StatementTimeout = None,
    lock_timeout: options.LockTimeout = None,
    run_time: options.RunTime = None,
    reason: options.Reason = None,
    yes: options.Yes = None,
    dry_run: options.DryRun = None,
    format: options.ReportFormat = None,  # noqa: A002  # named as its flag
    output: options.Output = None,
    exit_zero: options.ExitZero = None,
    debug: options.Debug = False,
) -> None:
    """Repair every thread that can be repaired safely.

    One new checkpoint is written behind each repairable head; no row that was there before is
    changed, and a run that is still alive wins over it. On a terminal it first shows what would be
    written and asks; elsewhere it needs --yes.

    \b
    Examples:
      repair-service sweep
      repair-service sweep --yes --deployed-at 2026-03-01T14:30:00Z --settle 2m
      repair-service sweep --yes --max-ratio 0.05 --reason "deploy 412"
      repair-service sweep --yes --shard 2/8 --jobs 4
      repair-service sweep --yes --rate 500 --max-lag 10s --max-active 100
      repair-service sweep --dry-run

    \b
    Exit codes:
      0  nothing wrong, or all of it repaired
      1  the store could not be read or written
      2  faults are left (manual, unreadable, or the thread moved on meanwhile)
      3  stopped by --max-repairs or --run-time, or a patch was rolled back
      5  refused: no terminal to ask on and no --yes, or more than --max-ratio
     64  wrong usage
    130, 143  stopped by Ctrl-C or SIGTERM, after the thread at hand
    """
    from repair_service.cli.running import audit_only
    from repair_service.cli.settings import load_settings

    settings = load_settings(context.params)
    if settings.dry_run:
        raise typer.Exit(audit_only("sweep", context.params, advise))
    raise typer.Exit(sweep_asked("sweep", settings, context.params, advise))


def sweep_asked(
    verb: str,
    settings: "Settings",
    flags: Mapping[str, Any],
    advise: "Callable[[Outcome, Mapping[str, Any]], str | None]",
) -> int:
    """The whole of a verb that writes every repairable head, and asks first on a terminal.

    Args:
        verb: The verb, for the report.
        settings: The settings.
        flags: The flags by name.
        advise: Gives the command to type next.

    Returns:
        The exit code.
    """
    from repair_service.cli.asking import need_answer
    from repair_service.cli.incremental import scope_of
    from repair_service.cli.ledger import check_reason, open_ledger
    from repair_service.cli.opening import open_output, open_replica, open_report, open_store
    from repair_service.cli.recording import preview, start_run
    from repair_service.cli.running import (
        check_threads_exist,
        run_reported,
        sweep_of,
        wait_for_deploy,
    )
    from repair_service.cli.signals import Stop

    check_reason(settings, writes=True)
    need_answer(verb, settings.yes, "--dry-run shows what would be written")
    with (
        Stop() as stop,
        open_output(settings) as out,
        open_store(settings, writes=True) as store,
        open_replica(settings, store) as replica,
        open_ledger(settings, store, writes=True, looks=True) as opened,
    ):
        report = open_report(settings, out)
        wait_for_deploy(settings)
        scope = scope_of(verb, settings, opened)
        if not settings.yes:
            look = preview(settings, opened, scope)
            if (code := _ask(settings, flags, store, replica, stop, look)) is not None:
                return code
        recording = start_run(verb, settings, opened, writes=True, scope=scope, replica=replica)
        outcome = run_reported(
            verb,
            settings,
            stop,
            recording,
            sweep_of(settings, store, recording, flags, replica),
            report=report,
            advise=lambda outcome: advise(outcome, flags),
        )
        check_threads_exist(settings, outcome)
        return int(outcome.code)


def _ask(
    settings: "Settings",
    flags: Mapping[str, Any],
    store: "Store",
    replica: "Store | None",
    stop: "Stop",
    look: "Recording",
) -> int | None:
    """Show what would be written, on stderr, and ask; None to go on, else the exit code."""
    from repair_service.cli.asking import agreed
    from repair_service.cli.running import audit_of, check_threads_exist, run_reported
    from repair_service.repair.verdict import Verdict
    from repair_service.report.table import TableReport

    def nothing(outcome: "Outcome") -> None:
        return None

    planned = run_reported(
        "audit",
        settings,
        stop,
        look,
        audit_of(settings, replica or store, look, flags=flags),
        report=TableReport(sys.stderr),
        advise=nothing,
    )
    check_threads_exist(settings, planned)
    count = planned.totals.verdicts[Verdict.REPAIRABLE]
    if not count:
        print("There is nothing to write.", file=sys.stderr)
        return int(planned.code)
    one = (
        "One new checkpoint will be written"
        if count == 1
        else (f"{count} new checkpoints will be written, one behind each repairable head")
    )
    print(f"{one}; no row that is there now is changed.", file=sys.stderr)
    stop.at_once()
    return None if agreed("Write?") else int(planned.code)
