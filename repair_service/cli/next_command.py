"""The command to type next, with the flags of this call."""

import shlex
from collections.abc import Mapping
from typing import Any

PROGRAM = "repair-service"

STORE = ("database_url", "schema", "config")
LEDGER = ("ledger_url",)
SELECTION = ("thread", "namespace", "since", "shard")
ACTIVITY = ("min_idle", "deployed_at", "settle", "active_query")
LOAD = (
    "rate",
    "max_lag",
    "max_active",
    "throttle_query",
    "pause_file",
    "statement_timeout",
    "lock_timeout",
)
REPLICA = ("read_url",)
MIGRATION = ("rename", "remove", "preset", "breakpoint")
POLICY = (
    "breakpoint",
    "infer_breakpoints",
    "client_tool",
    "tool_node",
    "nodes",
    "resume",
    "route",
    "allow",
    "last",
)


def next_command(
    verb: str, flags: Mapping[str, Any], names: tuple[str, ...], argument: str | None = None
) -> str:
    """A command line for the next step.

    Args:
        verb: The verb.
        flags: The flags by name.
        names: Those of them that the verb takes; they are repeated where they were given.
        argument: The verb's argument.

    Returns:
        The command line, quoted for a shell. A database URL with a password in it is left out, so
        that no secret gets into a log: DATABASE_URL has to hold it.
    """
    words = [PROGRAM, *verb.split()]
    for name in names:
        value = flags.get(name)
        flag = "--" + name.replace("_", "-")
        if name == "infer_breakpoints" and value is False:
            words.append("--no-infer-breakpoints")
        if value is None or value is False or value in ([], ()):
            continue
        if name.endswith("_url") and _has_password(value):
            continue
        if value is True:
            words.append(flag)
            continue
        for each in value if isinstance(value, list | tuple) else [value]:
            words += [flag, str(each)]
    if argument is not None:
        # An id that starts with a dash is no flag.
        words += ["--", argument] if argument.startswith("-") else [argument]
    return shlex.join(words)


def _has_password(url: str) -> bool:
    from psycopg.conninfo import conninfo_to_dict

    return any("password" in key for key in conninfo_to_dict(url))
