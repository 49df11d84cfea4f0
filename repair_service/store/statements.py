"""The statements of queries/*.sql, completed with the names of a store's schema."""

from functools import cache
from importlib.resources import files

from psycopg import sql

QUERIES = files("repair_service.store") / "queries"


@cache
def statement(name: str, schema: str, task_path: bool = True) -> sql.Composed:
    """One statement, ready to be executed.

    Args:
        name: Its file's name without `.sql`.
        schema: The schema of the checkpoint tables, put in as a quoted identifier.
        task_path: Whether `checkpoint_writes` has that column; LangGraph.js has none, and its
            writes read as if it were empty.

    Returns:
        The statement with every name in it quoted; values stay parameters, so it is executed with
        a mapping of them, be it an empty one.
    """
    # psycopg looks for its placeholders in names too.
    quoted = sql.Identifier(schema).as_string().replace("%", "%%")
    return sql.SQL(text_of(name)).format(
        schema=sql.SQL(quoted),
        task_path=sql.SQL("w.task_path") if task_path else sql.SQL("''::text"),
    )


@cache
def text_of(name: str) -> str:
    """The text of one statement, as its file has it."""
    return (QUERIES / f"{name}.sql").read_text(encoding="utf-8")
