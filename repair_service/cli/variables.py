"""Variables of the environment that are no settings: nearly one, or the key of encrypted rows."""

import difflib
import os
from collections.abc import Iterable, Mapping

from repair_service.errors import UsageError

PREFIX = "REPAIR_"

ALSO_READ = frozenset({"CONFIG", "DEBUG"})
"""Read elsewhere than as settings."""

NEARNESS = 0.84
"""One letter wrong in a short name, two in a long one: less alike is somebody else's variable."""


def check_variables(environment: Mapping[str, str], settings: Iterable[str]) -> None:
    """Refuse a mistyped variable: a sweep must not run without the setting that was meant.

    Args:
        environment: The environment.
        settings: The settings' names, as in the file.

    Raises:
        UsageError: A variable is no setting and nearly one; the message names both.
    """
    known = {name.upper() for name in settings} | ALSO_READ
    for variable in sorted(environment):
        name = variable.removeprefix(PREFIX).partition("__")[0]
        if not variable.startswith(PREFIX) or name in known:
            continue
        if near := difflib.get_close_matches(name, sorted(known), n=1, cutoff=NEARNESS):
            raise UsageError(f"{variable} is no setting; did you mean {PREFIX}{near[0]}?")


def aes_key() -> bytes | None:
    """The key of an encrypted store, from LANGGRAPH_AES_KEY as LangGraph reads it; None without.

    Raises:
        UsageError: The key has a length that AES does not know.
    """
    text = os.environ.get("LANGGRAPH_AES_KEY")
    if not text:
        return None
    key = text.encode()
    if len(key) not in (16, 24, 32):
        raise UsageError(
            f"LANGGRAPH_AES_KEY is {len(key)} bytes long, and AES keys have 16, 24 or 32; "
            "set the key that the application uses."
        )
    return key
