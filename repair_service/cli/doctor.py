"""`doctor`: whether a store can be worked with, and what to mend where it cannot."""

from typing import TYPE_CHECKING

import typer

from repair_service.cli import options

if TYPE_CHECKING:
    from repair_service.cli.settings import Settings
    from repair_service.report.checks import Check, Sample
    from repair_service.store.gateway import Store

SAMPLED_THREADS = 20
"""Recent threads whose heads are read: enough to see each layout and a wrong key."""


def doctor(
    context: typer.Context,
    database_url: options.DatabaseUrl = None,
    schema: options.Schema = None,
    config: options.Config = None,
    format: options.TextOrJson = None,  # noqa: A002  # named as its flag
    output: options.Output = None,
    debug: options.Debug = False,
) -> None:
    """Check a store, and say how to mend what is wrong. Writes nothing.

    It looks at the connection, rights, tables, migrations, layout, a pooler in between, the
    clock, the serialization types, and the key of encrypted rows (LANGGRAPH_AES_KEY).

    \b
    Examples:
      repair-service doctor --database-url postgresql://USER@HOST/DATABASE
      repair-service doctor --schema langgraph --format json

    \b
    Exit codes:
      0  the store can be audited (a warning says what else will not work)
      1  it cannot
     64  wrong usage
    """
    from repair_service.cli.next_command import STORE, next_command
    from repair_service.cli.opening import one_answer, open_output
    from repair_service.cli.settings import load_settings
    from repair_service.report.checks import exit_code_of, write_checks, write_checks_json

    settings = one_answer("doctor", load_settings(context.params), context.params)
    with open_output(settings) as out:
        checks = _checks(settings)
        code = exit_code_of(checks)
        advice = next_command("audit", context.params, STORE) if code == 0 else None
        write = write_checks_json if settings.format == "json" else write_checks
        write(out, checks, advice)
    raise typer.Exit(code)


def _checks(settings: "Settings") -> "list[Check]":
    from langgraph.checkpoint.postgres.base import MIGRATIONS

    from repair_service.cli.opening import store_address
    from repair_service.cli.variables import aes_key
    from repair_service.errors import StoreUnreachable
    from repair_service.report.checks import Check, checks_of
    from repair_service.store.gateway import Store

    key = aes_key()
    try:
        with Store.connect(
            store_address(settings), schema=settings.store_schema, aes_key=key, read_only=True
        ) as store:
            facts = store.inspect()
            readable = facts.refusal is None and all(
                table.may_select for table in facts.tables.values()
            )
            return checks_of(
                facts,
                newest_installed=len(MIGRATIONS) - 1,
                has_key=key is not None,
                sample=_sample(store) if readable else None,
            )
    except StoreUnreachable as error:
        return [Check("connection", "fail", str(error))]


def _sample(store: "Store") -> "Sample":
    """Read the heads of some recent threads."""
    from collections import Counter

    from repair_service.checkpoint.tasks import read_head
    from repair_service.errors import Unreadable
    from repair_service.report.checks import Sample

    layouts: Counter[str] = Counter()
    unusable: dict[str, None] = {}
    unreadable: dict[str, None] = {}
    threads = store.threads(store.recent_threads(SAMPLED_THREADS), depth=1)
    for thread in threads.values():
        for rows in thread.heads.values():
            unusable |= dict.fromkeys(blob.problem for blob in rows.blobs.values() if blob.problem)
            try:
                layouts[read_head(rows).layout] += 1
            except Unreadable as problem:
                unreadable[str(problem)] = None
    return Sample(len(threads), dict(layouts.most_common()), list(unusable), list(unreadable))
