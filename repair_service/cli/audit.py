"""`audit`: the dry run over a selection."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from repair_service.cli import options

if TYPE_CHECKING:
    from repair_service.cli.running import Outcome


def audit(
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
    types: options.Types = False,
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
    run_time: options.RunTime = None,
    reason: options.Reason = None,
    format: options.ReportFormat = None,  # noqa: A002  # named as its flag
    output: options.Output = None,
    exit_zero: options.ExitZero = None,
    debug: options.Debug = False,
) -> None:
    """Find the damaged threads and say what would be written. Writes nothing.

    It takes the same decisions as sweep. Every head that is not healthy is listed, with its
    verdict, its faults, and what sweep would do about them. Where there is a ledger (db upgrade)
    the findings are kept there, for runs and report.

    \b
    Examples:
      repair-service audit
      repair-service audit --since 2026-03-01 --format jsonl > audit.jsonl
      repair-service audit --thread 4711 --min-idle 0
      repair-service audit --types
      repair-service audit --read-url postgresql://USER@REPLICA/DATABASE

    \b
    Exit codes:
      0  nothing wrong (waiting and active threads are not wrong)
      1  the store could not be read
      2  faults found
      3  stopped by --run-time
     64  wrong usage
    130, 143  stopped by Ctrl-C or SIGTERM; what was found is reported
    """
    if types:
        from repair_service.cli.classes import audit_types

        raise typer.Exit(audit_types(context.params))
    from repair_service.cli.running import audit_only

    raise typer.Exit(audit_only("audit", context.params, advise))


def advise(outcome: "Outcome", flags: Mapping[str, Any]) -> str | None:
    """What to type after an audit."""
    from repair_service.cli import next_command as command
    from repair_service.cli.next_command import next_command
    from repair_service.repair.verdict import Verdict

    if outcome.totals.verdicts[Verdict.REPAIRABLE]:
        chosen = (
            command.SELECTION + command.ACTIVITY + command.POLICY + command.LOAD + command.REPLICA
        )
        return next_command("sweep", flags, command.STORE + command.LEDGER + chosen)
    for verdict in (Verdict.FAILED, Verdict.MANUAL, Verdict.UNREADABLE):
        if verdict in outcome.first:
            names = command.STORE + command.POLICY
            return next_command("show", flags, names, outcome.first[verdict].thread_id)
    return None
