"""`report RUN`: a past run, in any format."""

import typer

from repair_service.cli import options


def report(
    context: typer.Context,
    run_id: options.RunId,
    database_url: options.DatabaseUrl = None,
    schema: options.Schema = None,
    ledger_url: options.LedgerUrl = None,
    config: options.Config = None,
    format: options.PastFormat = None,  # noqa: A002  # named as its flag
    output: options.Output = None,
    debug: options.Debug = False,
) -> None:
    """Report a past run, with the evidence and what to do next.

    It says what that run said when it ran; the threads may have moved on since. No report holds
    any content of a message.

    \b
    Examples:
      repair-service report last
      repair-service report last --format html --output report.html
      repair-service report last --format markdown

    \b
    Exit codes:
      0  reported, whatever was found
      1  there is no such run or no ledger, or it could not be read
     64  wrong usage
    """
    from repair_service.cli.ledger import LOOKING, find_run, needed_ledger
    from repair_service.cli.opening import open_output
    from repair_service.cli.settings import load_settings
    from repair_service.errors import UsageError
    from repair_service.report.past import write_past

    settings = load_settings(context.params)
    with open_output(settings) as out, needed_ledger(settings, "report") as ledger:
        run = find_run(ledger, run_id, LOOKING)
        if run.verb == "undo":
            raise UsageError(
                f"Run {run.id} is an undo, which looks at no heads; see it with runs show {run.id}."
            )
        write_past(settings.format, out, run, lambda: ledger.findings.all(run.id), None)
