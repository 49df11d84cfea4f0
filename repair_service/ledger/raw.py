"""The ledger's statements in somebody else's transaction."""

from typing import Any

import psycopg
from sqlalchemy import Insert, Update
from sqlalchemy.dialects.postgresql import psycopg as psycopg_dialect

_DIALECT = psycopg_dialect.dialect()  # type: ignore[no-untyped-call]


def execute_on(connection: "psycopg.Connection[Any]", statement: Insert | Update) -> int:
    """Runs one statement on a raw psycopg connection, in the transaction that is open there.

    It is committed, or not, with everything else in that transaction.

    Args:
        connection: The connection; its row factory, loaders and transaction stay as they are.
        statement: An INSERT or UPDATE with its values.

    Returns:
        How many rows it wrote.

    Raises:
        psycopg.Error: The statement failed, and with it the transaction.
    """
    compiled = statement.compile(dialect=_DIALECT, compile_kwargs={"render_postcompile": True})
    values = dict(compiled.params)
    for name, bind in compiled.binds.items():
        # The dialect's own form of a value: psycopg would not take a mapping for jsonb.
        convert = bind.type.dialect_impl(_DIALECT).bind_processor(_DIALECT)
        if convert is not None and name in values:
            values[name] = convert(values[name])
    with connection.cursor() as cursor:
        return cursor.execute(str(compiled).encode(), values, prepare=False).rowcount
