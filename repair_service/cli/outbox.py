"""`outbox`: what the application is to be told by its webhook."""

import sys
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from repair_service.cli import options

if TYPE_CHECKING:
    from repair_service.cli.settings import Settings
    from repair_service.ledger.records.event import DeadLetter, OutboxCounts

SHOWN = 50
"""Events that were given up, of which the newest are listed."""

outbox = typer.Typer(
    name="outbox",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="What the application is told of repairs by its webhook.",
)


@outbox.command()
def show(
    context: typer.Context,
    database_url: options.DatabaseUrl = None,
    ledger_url: options.LedgerUrl = None,
    config: options.Config = None,
    format: options.TextOrJson = None,  # noqa: A002  # named as its flag
    debug: options.Debug = False,
) -> None:
    """Say how many events are due, sent and given up, and list those given up.

    \b
    Examples:
      repair-service outbox show
      repair-service outbox show --format json

    \b
    Exit codes:
      0  said, whatever it is
      1  there is no ledger, or it could not be read
     64  wrong usage
    """
    from repair_service.cli.ledger import needed_ledger

    settings = _settings(context.params)
    with needed_ledger(settings, "outbox") as ledger:
        _say(settings.format, ledger.outbox.counts(), ledger.outbox.dead_letters(SHOWN))


@outbox.command()
def send(
    context: typer.Context,
    database_url: options.DatabaseUrl = None,
    ledger_url: options.LedgerUrl = None,
    config: options.Config = None,
    debug: options.Debug = False,
) -> None:
    """Send what is due, once. The worker, and every verb that writes, does it by itself.

    \b
    Examples:
      repair-service outbox send

    \b
    Exit codes:
      0  nothing was due, or all of it was taken
      1  there is no ledger, or it could not be used
      3  some of it was not taken; it is sent again later
     64  wrong usage, or no webhook is set
    """
    from repair_service.cli.exits import ExitCode
    from repair_service.cli.ledger import needed_ledger
    from repair_service.cli.telling import webhook_of
    from repair_service.errors import UsageError

    settings = _settings(context.params)
    webhook = webhook_of(settings)
    if webhook is None:
        raise UsageError("No webhook is set; give [webhook] url, or REPAIR_WEBHOOK__URL.")
    from repair_service.worker.delivery import Delivery

    with needed_ledger(settings, "outbox send") as ledger:
        done = Delivery(ledger, webhook).run_once()
    missed = done.failed + done.given_up
    print(f"{webhook.place} took {done.sent} of {done.sent + missed} events.")
    if missed:
        print(f"Of the others, the last: {done.problem}.", file=sys.stderr)
        raise typer.Exit(ExitCode.PARTLY_FAILED)


@outbox.command()
def retry(
    context: typer.Context,
    event: Annotated[
        list[UUID] | None,
        typer.Argument(help="The events' ids; all that were given up by default.", metavar="ID"),
    ] = None,
    database_url: options.DatabaseUrl = None,
    ledger_url: options.LedgerUrl = None,
    config: options.Config = None,
    debug: options.Debug = False,
) -> None:
    """Make events that were given up due again, from the first attempt.

    They are sent behind what their threads have had since: `checkpoint_id` says which is newer.

    \b
    Examples:
      repair-service outbox retry && repair-service outbox send

    \b
    Exit codes:
      0  done; the answer says how many
      1  there is no ledger, or it could not be used
     64  wrong usage
    """
    from repair_service.cli.ledger import needed_ledger

    settings = _settings({name: value for name, value in context.params.items() if name != "event"})
    with needed_ledger(settings, "outbox retry") as ledger:
        count = ledger.outbox.retry(event or ())
    print(f"{count} events are due again.")


def _settings(flags: dict[str, Any]) -> "Settings":
    from repair_service.cli.opening import one_answer
    from repair_service.cli.settings import load_settings

    return one_answer("outbox", load_settings(flags), flags)


def _say(form: str, counts: "OutboxCounts", dead: "list[DeadLetter]") -> None:
    from repair_service.report.answer import write_document
    from repair_service.report.document import SCHEMA_VERSION
    from repair_service.report.table import printable

    if form == "json":
        write_document(
            sys.stdout,
            {
                "schema_version": SCHEMA_VERSION,
                "due": counts.due,
                "oldest_due_at": counts.oldest_due_at,
                "sent": counts.sent,
                "dead": counts.dead,
                "dead_letters": dead,
                "exit_code": 0,
            },
        )
        return
    since = f", the oldest since {counts.oldest_due_at:%Y-%m-%d %H:%M:%S%z}" if counts.due else ""
    print(f"due {counts.due}{since}; sent {counts.sent}; given up {counts.dead}")
    for each in dead:
        print(
            f"  {each.id}  {each.type}  thread {printable(each.thread_id)}  "
            f"{each.attempts} attempts; {each.problem}"
        )
    if counts.dead:
        print("Send them after all with: repair-service outbox retry")
