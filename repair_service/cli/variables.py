"""Variables of the environment that are no settings: nearly one, or the key of encrypted rows."""

import difflib
import json
import os
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from repair_service.errors import UsageError

PREFIX = "REPAIR_"

ALSO_READ = frozenset(
    {
        *("CONFIG", "DEBUG", "LOG_FORMAT"),
        *("STORES", "SCHEDULES", "WORKER", "WORKER_TOKEN", "WORKER_TOKEN_FILE", "WORKER_RUN"),
    }
)
"""Read elsewhere than as settings."""

WORKER_TABLES = frozenset({"stores", "schedules", "worker"})
"""Tables of the file that are the worker's."""

WORKER_RUN = "REPAIR_WORKER_RUN"
"""What a run is told by its worker (worker.child); nobody else sets it."""

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
    return check_key(text, "LANGGRAPH_AES_KEY")


def check_key(text: str, place: str) -> bytes:
    """A key of encrypted rows.

    Args:
        text: The key as it is set.
        place: Where, for a message.

    Raises:
        UsageError: It has a length that AES does not know.
    """
    key = text.encode()
    if len(key) not in (16, 24, 32):
        raise UsageError(
            f"{place} is {len(key)} bytes long, and AES keys have 16, 24 or 32; "
            "set the key that the application uses."
        )
    return key


def settings_told(environment: Mapping[str, str]) -> Mapping[str, Any]:
    """The settings that a worker tells this process, which is one of its runs; else none."""
    text = environment.get(WORKER_RUN)
    settings: Mapping[str, Any] = json.loads(text)["settings"] if text else {}
    return settings


def run_id_told(environment: Mapping[str, str]) -> UUID | None:
    """The id that a worker gives to this run; None where it is none of a worker's."""
    text = environment.get(WORKER_RUN)
    return UUID(json.loads(text)["run_id"]) if text else None


def wants_json_lines(environment: Mapping[str, str]) -> bool:
    """Whether what goes to stderr is for a collector of logs: REPAIR_LOG_FORMAT is `json`.

    Raises:
        UsageError: It is neither that nor `text`.
    """
    text = environment.get("REPAIR_LOG_FORMAT") or "text"
    if text not in ("json", "text"):
        raise UsageError("REPAIR_LOG_FORMAT is json or text.")
    return text == "json"
