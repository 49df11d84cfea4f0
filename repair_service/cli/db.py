"""`db`: the ledger's tables."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from repair_service.cli import options

if TYPE_CHECKING:
    from repair_service.cli.settings import Settings

Sql = Annotated[
    bool,
    typer.Option("--sql", help="Print the SQL for the database's owner to run; change nothing."),
]

db = typer.Typer(
    name="db",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Make, upgrade and check the ledger's tables.",
)


@db.command()
def upgrade(
    context: typer.Context,
    sql: Sql = False,
    database_url: options.DatabaseUrl = None,
    ledger_url: options.LedgerUrl = None,
    config: options.Config = None,
    format: options.TextOrJson = None,  # noqa: A002  # named as its flag
    debug: options.Debug = False,
) -> None:
    """Make the ledger's tables, or bring them to this release.

    They are in the schema repair_service of the store's database, or of --ledger-url's. Any number
    of processes may do this at once. The application's tables are not touched.

    \b
    Examples:
      repair-service db upgrade
      repair-service db upgrade --ledger-url postgresql://USER@HOST/DATABASE
      repair-service db upgrade --sql > ledger.sql

    \b
    Exit codes:
      0  the ledger is this release's
      1  it could not be made; the message names the missing right
     64  wrong usage
    """
    from repair_service.cli.ledger import ledger_address
    from repair_service.ledger import migrate

    settings = _settings(context.params)
    if sql:
        print(migrate.statements(), end="")
        return
    done = migrate.upgrade(ledger_address(settings))
    if done.applied:
        said = f"The ledger is at {done.after}; ran {', '.join(done.applied)}."
    else:
        said = f"The ledger is at {done.after} already."
    _answer(
        settings.format,
        said,
        {"before": done.before, "after": done.after, "applied": done.applied, "exit_code": 0},
    )


@db.command()
def current(
    context: typer.Context,
    database_url: options.DatabaseUrl = None,
    ledger_url: options.LedgerUrl = None,
    config: options.Config = None,
    format: options.TextOrJson = None,  # noqa: A002  # named as its flag
    debug: options.Debug = False,
) -> None:
    """Say which migration the ledger is at. Changes nothing.

    \b
    Examples:
      repair-service db current
      repair-service db current --format json

    \b
    Exit codes:
      0  said, whatever it is
      1  the database could not be reached
     64  wrong usage
    """
    from repair_service.cli.ledger import ledger_address
    from repair_service.ledger import migrate

    settings = _settings(context.params)
    now = migrate.current(ledger_address(settings))
    at = f"at {now.revision}" if now.revision else "not there"
    said = f"The ledger is {at} ({now.state.value}); this release needs {now.head}."
    _answer(
        settings.format,
        said,
        {
            "state": now.state.value,
            "revision": now.revision,
            "head": now.head,
            "pending": now.pending,
            "exit_code": 0,
        },
    )


@db.command()
def check(
    context: typer.Context,
    database_url: options.DatabaseUrl = None,
    ledger_url: options.LedgerUrl = None,
    config: options.Config = None,
    format: options.TextOrJson = None,  # noqa: A002  # named as its flag
    debug: options.Debug = False,
) -> None:
    """Say whether this release and this role can keep a ledger, and what to do where not.

    \b
    Examples:
      repair-service db check
      repair-service db check --format json

    \b
    Exit codes:
      0  runs can be kept
      1  they cannot; the answer says what to do
     64  wrong usage
    """
    from repair_service.cli.ledger import ledger_address
    from repair_service.ledger import migrate

    settings = _settings(context.params)
    found = migrate.check(ledger_address(settings))
    code = 0 if found.ready else 1
    _answer(
        settings.format,
        found.remedy or f"Runs are kept; the ledger is at {found.current.revision}.",
        {
            "ready": found.ready,
            "state": found.current.state.value,
            "remedy": found.remedy,
            "exit_code": code,
        },
    )
    raise typer.Exit(code)


def _settings(flags: dict[str, Any]) -> "Settings":
    from repair_service.cli.opening import one_answer
    from repair_service.cli.settings import load_settings

    settings = load_settings({name: value for name, value in flags.items() if name != "sql"})
    return one_answer("db", settings, flags)


def _answer(format: str, said: str, document: dict[str, Any]) -> None:  # noqa: A002  # its flag
    import sys

    from repair_service.report.answer import write_document
    from repair_service.report.document import SCHEMA_VERSION

    if format == "json":
        write_document(sys.stdout, {"schema_version": SCHEMA_VERSION, **document})
    else:
        print(said)
