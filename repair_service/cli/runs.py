"""`runs` and `runs show RUN`: what the ledger keeps."""

from typing import TYPE_CHECKING, Annotated

import typer

from repair_service.cli import options

if TYPE_CHECKING:
    from repair_service.cli.settings import Settings
    from repair_service.ledger.gateway import Ledger

NEWEST = 20

Limit = Annotated[
    int,
    typer.Option("--limit", min=1, max=10_000, help="How many at most.", metavar="N"),
]

runs = typer.Typer(name="runs", invoke_without_command=True, rich_markup_mode=None)


@runs.callback()
def list_runs(
    context: typer.Context,
    limit: Limit = NEWEST,
    database_url: options.DatabaseUrl = None,
    schema: options.Schema = None,
    ledger_url: options.LedgerUrl = None,
    config: options.Config = None,
    format: options.TextOrJson = None,  # noqa: A002  # named as its flag
    output: options.Output = None,
    debug: options.Debug = False,
) -> None:
    """List the runs in the ledger, newest first.

    What a crash left open between the store and a ledger in another database is settled first.

    \b
    Examples:
      repair-service runs
      repair-service runs --limit 100 --format json
      repair-service runs show last

    \b
    Exit codes:
      0  listed
      1  there is no ledger, or it could not be read
     64  wrong usage
    """
    if context.invoked_subcommand is not None:
        return
    from repair_service.cli.ledger import LOOKING, needed_ledger
    from repair_service.cli.next_command import LEDGER, STORE, next_command
    from repair_service.cli.opening import one_answer, open_output
    from repair_service.cli.settings import load_settings
    from repair_service.report.runs import write_runs, write_runs_json

    settings = one_answer("runs", load_settings(context.params), context.params)
    with open_output(settings) as out, needed_ledger(settings, "runs") as ledger:
        _settle(settings, ledger)
        newest = ledger.runs.newest(limit)
        reported = next((run for run in newest if run.verb in LOOKING), None)
        advice = (
            next_command("report", context.params, STORE + LEDGER, str(reported.id))
            if reported
            else None
        )
        write = write_runs_json if settings.format == "json" else write_runs
        write(out, newest, len(ledger.repairs.open_intents()), advice)


@runs.command()
def show(
    context: typer.Context,
    run_id: options.RunId,
    database_url: options.DatabaseUrl = None,
    schema: options.Schema = None,
    ledger_url: options.LedgerUrl = None,
    config: options.Config = None,
    format: options.TextOrJson = None,  # noqa: A002  # named as its flag
    output: options.Output = None,
    debug: options.Debug = False,
) -> None:
    """Show one run: who, why, when, what it counted, and each patch that it wrote.

    \b
    Examples:
      repair-service runs show last
      repair-service runs show 0b9d6a0e-7c2f-4a55-9a56-6f1d2c3b4a59 --format json

    \b
    Exit codes:
      0  shown
      1  there is no such run or no ledger, or it could not be read
     64  wrong usage
    """
    from repair_service.cli.ledger import LOOKING, find_run, needed_ledger
    from repair_service.cli.next_command import LEDGER, STORE, next_command
    from repair_service.cli.opening import one_answer, open_output
    from repair_service.cli.settings import load_settings
    from repair_service.report.runs import write_run, write_run_json

    settings = one_answer("runs show", load_settings(context.params), context.params)
    with open_output(settings) as out, needed_ledger(settings, "runs show") as ledger:
        run = find_run(ledger, run_id)
        repairs = list(ledger.repairs.of_run(run.id))
        advice = (
            next_command("report", context.params, STORE + LEDGER, str(run.id))
            if run.verb in LOOKING
            else None
        )
        write = write_run_json if settings.format == "json" else write_run
        write(out, run, repairs, advice)


def _settle(settings: "Settings", ledger: "Ledger") -> None:
    """Settle what is open, where the store is named: the ledger alone cannot know."""
    from repair_service.cli.ledger import known_store
    from repair_service.cli.opening import open_store

    if settings.database_url is None or not ledger.repairs.open_intents(limit=1):
        return
    with open_store(settings, writes=False) as store:
        known_store(settings, store, ledger)
