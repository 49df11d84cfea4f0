"""`store`: LangGraph's own tables, against the saver that is installed here."""

import sys
from typing import TYPE_CHECKING, Any

import typer

from repair_service.cli import options

if TYPE_CHECKING:
    from repair_service.cli.settings import Settings
    from repair_service.store.upgrade import StoreStatus

BEHIND = 2
"""The exit code of a store that an upgrade would change."""

store = typer.Typer(
    name="store",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Check and upgrade LangGraph's own tables.",
)


@store.command()
def status(
    context: typer.Context,
    database_url: options.DatabaseUrl = None,
    schema: options.Schema = None,
    config: options.Config = None,
    format: options.TextOrJson = None,  # noqa: A002  # named as its flag
    debug: options.Debug = False,
) -> None:
    """Say which migration LangGraph's tables are at, and what an upgrade would run.

    Changes nothing.
    The saver's setup() runs its migrations at an application's start: on a large store that is the
    moment at which an index is built for an hour. Here they can be run before. An index that a
    broken CREATE INDEX CONCURRENTLY left behind, which setup() takes for a whole one, is found.

    \b
    Examples:
      repair-service store status
      repair-service store status --schema langgraph --format json

    \b
    Exit codes:
      0  the tables are those of the installed saver, or newer
      1  the store could not be read, or is none that is understood
      2  an upgrade would change them
     64  wrong usage
    """
    settings = _settings(context.params)
    found = _look(settings)
    code = BEHIND if found.steps else 0
    _answer(settings, found, code)
    raise typer.Exit(code)


@store.command()
def upgrade(
    context: typer.Context,
    database_url: options.DatabaseUrl = None,
    schema: options.Schema = None,
    config: options.Config = None,
    yes: options.Yes = None,
    format: options.TextOrJson = None,  # noqa: A002  # named as its flag
    debug: options.Debug = False,
) -> None:
    """Run the migrations of the installed saver, and nothing else.

    It shows the statements first and asks; elsewhere than on a terminal it needs --yes. A lock that
    somebody holds is waited for in short tries, so that nobody queues behind us. What was broken
    off is taken up again by the next upgrade; a broken index is dropped and built anew.
    LangGraph.js goes on with the tables as before. Run it as the tables' owner, and not through a
    pooler.

    \b
    Examples:
      repair-service store upgrade
      repair-service store upgrade --yes --schema langgraph

    \b
    Exit codes:
      0  the tables are those of the installed saver
      1  a statement failed, or its lock was not to be had; the next upgrade goes on there
      5  refused: no terminal to ask on and no --yes, another upgrade runs, or a pooler in between
     64  wrong usage
    130, 143  stopped by Ctrl-C or SIGTERM; the next upgrade goes on there
    """
    from repair_service.cli.asking import agreed, need_answer
    from repair_service.cli.opening import store_address
    from repair_service.cli.signals import Stop, Stopped
    from repair_service.store.upgrade import Upgrade

    settings = _settings(context.params)
    need_answer("store upgrade", settings.yes, "store status shows what would be run")
    found = _look(settings)
    if found.steps and not settings.yes:
        _answer(settings, found, 0, to_stderr=True)
        if not agreed("Run them?"):
            raise typer.Exit(BEHIND)
    if found.steps:
        work = Upgrade(store_address(settings), say=lambda text: print(text, file=sys.stderr))
        try:
            with Stop():
                work.run(found, lambda: _look(settings))
        except Stopped as signal:
            raise typer.Exit(signal.exit_code) from None
    _answer(settings, _look(settings), 0)


def _settings(flags: dict[str, Any]) -> "Settings":
    from repair_service.cli.opening import one_answer
    from repair_service.cli.settings import load_settings

    return one_answer("store", load_settings(flags), flags)


def _look(settings: "Settings") -> "StoreStatus":
    from langgraph.checkpoint.postgres.base import MIGRATIONS

    from repair_service.cli.opening import store_address
    from repair_service.store.upgrade import look

    return look(store_address(settings), settings.store_schema, MIGRATIONS)


def _answer(
    settings: "Settings", found: "StoreStatus", code: int, *, to_stderr: bool = False
) -> None:
    from repair_service.report.store_status import status_lines, write_status_json

    if settings.format == "json" and not to_stderr:
        write_status_json(sys.stdout, found, code)
        return
    status_lines(sys.stderr if to_stderr else sys.stdout, found)
