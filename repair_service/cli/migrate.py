"""`migrate`: threads carried over to a graph that has changed."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from repair_service.cli import options

if TYPE_CHECKING:
    from repair_service.cli.running import Outcome

migrate = typer.Typer(
    name="migrate",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Carry threads over to a graph that has changed.",
)


@migrate.command()
def nodes(
    context: typer.Context,
    rename: options.Rename = None,
    remove: options.Remove = None,
    preset: options.Preset = None,
    breakpoint: options.StoppedBefore = None,  # noqa: A002  # named as its flag
    database_url: options.DatabaseUrl = None,
    schema: options.Schema = None,
    ledger_url: options.LedgerUrl = None,
    config: options.Config = None,
    thread: options.Thread = None,
    namespace: options.Namespace = None,
    since: options.Since = None,
    shard: options.Shard = None,
    jobs: options.Jobs = None,
    min_idle: options.MinIdle = None,
    deployed_at: options.DeployedAt = None,
    settle: options.Settle = None,
    active_query: options.ActiveQuery = None,
    max_repairs: options.MaxRepairs = None,
    max_ratio: options.MaxRatio = None,
    reason: options.Reason = None,
    out: options.PlanOut = None,
    yes: options.Yes = None,
    dry_run: options.DryRun = None,
    format: options.ReportFormat = None,  # noqa: A002  # named as its flag
    output: options.Output = None,
    exit_zero: options.ExitZero = None,
    debug: options.Debug = False,
) -> None:
    """Carry over threads that wait, or stopped, at a node that was renamed or removed.

    LangGraph passes over a task at a node that the graph does not have: no next node, no question,
    and an answer goes nowhere. One new checkpoint is written behind each such head, with the same
    step pending under the new names; questions, answers, the writes of finished tasks and the
    sub-graphs in the middle of a task go with it. No row that was there before is changed. Heads
    at rest need nothing, unless the graph has static breakpoints (--breakpoint). On a terminal it
    first shows what would be written and asks; elsewhere it needs --yes. A node of a sub-graph is
    PARENT|NODE, and its new name the bare one.

    \b
    Examples:
      repair-service audit --nodes plan,review,send
      repair-service migrate nodes --rename approve=review --dry-run
      repair-service migrate nodes --rename approve=review --yes
      repair-service migrate nodes --rename "team|approve=review" --remove legacy
      repair-service migrate nodes --preset create-react-agent-to-create-agent
      repair-service migrate nodes --rename approve=review --breakpoint send --dry-run
      repair-service undo --run last

    \b
    Exit codes:
      0  nothing is concerned, or all of it was carried over
      1  the store could not be read or written
      2  heads are left (manual, unreadable, or the thread moved on); with --dry-run, concerned
      3  stopped by --max-repairs, or a patch failed its check and was rolled back
      5  refused: no terminal to ask on and no --yes, or more than --max-ratio
     64  wrong usage
    130, 143  stopped by Ctrl-C or SIGTERM, after the thread at hand
    """
    raise typer.Exit(_migrate("nodes", context.params))


@migrate.command()
def channels(
    context: typer.Context,
    rename: options.Rename = None,
    breakpoint: options.StoppedBefore = None,  # noqa: A002  # named as its flag
    database_url: options.DatabaseUrl = None,
    schema: options.Schema = None,
    ledger_url: options.LedgerUrl = None,
    config: options.Config = None,
    thread: options.Thread = None,
    namespace: options.Namespace = None,
    since: options.Since = None,
    shard: options.Shard = None,
    jobs: options.Jobs = None,
    min_idle: options.MinIdle = None,
    deployed_at: options.DeployedAt = None,
    settle: options.Settle = None,
    active_query: options.ActiveQuery = None,
    max_repairs: options.MaxRepairs = None,
    max_ratio: options.MaxRatio = None,
    reason: options.Reason = None,
    out: options.PlanOut = None,
    yes: options.Yes = None,
    dry_run: options.DryRun = None,
    format: options.ReportFormat = None,  # noqa: A002  # named as its flag
    output: options.Output = None,
    exit_zero: options.ExitZero = None,
    debug: options.Debug = False,
) -> None:
    """Carry over threads whose graph has another name for a key of its state.

    The new graph finds nothing under the new key. One new checkpoint is written behind each head
    that has a value under the old one, with the same value under the new one; what finished tasks
    have written for it goes with it. A delta channel is stored whole. No row that was there before
    is changed. A head whose pending Sends may carry the key in their arguments is left to a person.
    A key of a sub-graph's own state is NODE|KEY, and its new name the bare one.

    \b
    Examples:
      repair-service migrate channels --rename messages=conversation --dry-run
      repair-service migrate channels --rename messages=conversation --yes
      repair-service undo --run last

    \b
    Exit codes:
      0  nothing is concerned, or all of it was carried over
      1  the store could not be read or written
      2  heads are left (manual, unreadable, or the thread moved on); with --dry-run, concerned
      3  stopped by --max-repairs, or a patch failed its check and was rolled back
      5  refused: no terminal to ask on and no --yes, or more than --max-ratio
     64  wrong usage
    130, 143  stopped by Ctrl-C or SIGTERM, after the thread at hand
    """
    raise typer.Exit(_migrate("channels", context.params))


@migrate.command()
def types(
    context: typer.Context,
    rename: options.Rename = None,
    database_url: options.DatabaseUrl = None,
    schema: options.Schema = None,
    ledger_url: options.LedgerUrl = None,
    config: options.Config = None,
    thread: options.Thread = None,
    namespace: options.Namespace = None,
    since: options.Since = None,
    shard: options.Shard = None,
    jobs: options.Jobs = None,
    min_idle: options.MinIdle = None,
    deployed_at: options.DeployedAt = None,
    settle: options.Settle = None,
    active_query: options.ActiveQuery = None,
    max_repairs: options.MaxRepairs = None,
    max_ratio: options.MaxRatio = None,
    reason: options.Reason = None,
    out: options.PlanOut = None,
    yes: options.Yes = None,
    dry_run: options.DryRun = None,
    format: options.ReportFormat = None,  # noqa: A002  # named as its flag
    output: options.Output = None,
    exit_zero: options.ExitZero = None,
    debug: options.Debug = False,
) -> None:
    """Carry over threads whose values name a class that was moved or renamed.

    LangGraph reads an object of a class that it does not find as plain data, or as nothing. One new
    checkpoint is written behind each head whose values name the old class, with the new name in
    its place and every other byte as it was: in messages, scheduled Sends, questions, pending
    writes, and what a delta channel is rebuilt from. Nothing is imported, and no row that was there
    before is changed. audit --types lists the classes in use.

    \b
    Examples:
      repair-service audit --types
      repair-service migrate types --rename shop.models.Cart=shop.cart.Cart --dry-run
      repair-service migrate types --rename shop.models.Cart=shop.cart.Cart --yes
      repair-service undo --run last

    \b
    Exit codes:
      0  nothing is concerned, or all of it was carried over
      1  the store could not be read or written
      2  heads are left (manual, unreadable, or the thread moved on); with --dry-run, concerned
      3  stopped by --max-repairs, or a patch failed its check and was rolled back
      5  refused: no terminal to ask on and no --yes, or more than --max-ratio
     64  wrong usage
    130, 143  stopped by Ctrl-C or SIGTERM, after the thread at hand
    """
    raise typer.Exit(_migrate("types", context.params))


def _migrate(kind: str, params: Mapping[str, Any]) -> int:
    """The whole of one of the verbs."""
    from repair_service.cli.plan import write_plan_of
    from repair_service.cli.running import audit_only
    from repair_service.cli.settings import load_settings
    from repair_service.cli.sweep import sweep_asked

    verb = f"migrate {kind}"
    flags = {**params, "migrate": kind}
    settings = load_settings(flags)
    settings.policy()  # what cannot be meant is said before the store is opened

    def advise(outcome: "Outcome", flags: Mapping[str, Any]) -> str | None:
        return _advise(verb, outcome, flags)

    if params.get("out") is not None:
        return write_plan_of(verb, settings, flags, params["out"])
    if settings.dry_run:
        return audit_only(verb, flags, advise)
    return sweep_asked(verb, settings, flags, advise)


def _advise(verb: str, outcome: "Outcome", flags: Mapping[str, Any]) -> str | None:
    """What to type after a look, or after it was written."""
    from repair_service.cli import next_command as command
    from repair_service.cli.next_command import next_command
    from repair_service.repair.verdict import Verdict

    if outcome.totals.verdicts[Verdict.REPAIRABLE]:
        chosen = command.MIGRATION + command.SELECTION + command.ACTIVITY
        return next_command(verb, flags, command.STORE + command.LEDGER + chosen)
    for verdict in (Verdict.FAILED, Verdict.MANUAL, Verdict.UNREADABLE):
        if verdict in outcome.first:
            return next_command("show", flags, command.STORE, outcome.first[verdict].thread_id)
    return None
