"""Logs on stderr: a line of JSON each off a terminal, and readable on one.

No line holds the text of a message, an argument or a secret. Of an error that nobody thought of it
is said what and where, not its text, which may hold any of them.
"""

import io
import logging
import os
import sys
import traceback
from collections.abc import MutableMapping
from typing import Any

import structlog

from repair_service.repair.diagnosis import Diagnosis
from repair_service.repair.verdict import Verdict
from repair_service.report.document import Ending, Report

WRITTEN = {Verdict.REPAIRED: "info", Verdict.DRIFTED: "info", Verdict.FAILED: "error"}
"""The outcomes of a head that are told one by one; the others are in the ledger and in the totals,
for a store may have a hundred thousand of them."""

_log = structlog.get_logger("repair_service")


def start_logs(*, json: bool, **bound: object) -> None:
    """Log to stderr from now on, and what libraries warn of as well.

    Args:
        json: Whether each line is JSON.
        bound: What each line says besides.
    """
    out = sys.stderr
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _without_nothing,
        _place_of_error,
    ]
    last: Any = (
        structlog.processors.JSONRenderer()
        if json
        else structlog.dev.ConsoleRenderer(colors=out.isatty(), pad_event_to=0)
    )
    bound = {name: value for name, value in bound.items() if value is not None}
    structlog.configure(
        processors=[_binder(bound), *shared, last],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.WriteLoggerFactory(out),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[_binder(bound), *shared],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, last],
        )
    )
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)


def log_stderr(**bound: object) -> None:
    """Make each line that is printed to stderr from now on a line of the log, in JSON."""
    start_logs(json=True, **bound)
    sys.stderr = _Lines()


class LoggedReport:
    """Tells the log of each head that was written, and of the ending."""

    def __init__(self, report: Report | None = None) -> None:
        """Log beside another report, or alone."""
        self._report = report

    def add(self, diagnosis: Diagnosis) -> None:
        """Report one head that is not healthy."""
        if level := WRITTEN.get(diagnosis.verdict):
            patch = diagnosis.patch
            getattr(_log, level)(
                diagnosis.verdict.value,
                thread_id=diagnosis.thread_id,
                checkpoint_ns=diagnosis.checkpoint_ns,
                checkpoint_id=diagnosis.checkpoint_id,
                placeholders=patch.placeholders if patch else None,
                salvaged=patch.salvaged if patch else None,
            )
        if self._report is not None:
            self._report.add(diagnosis)

    def end(self, ending: Ending) -> None:
        """Report the ending; nothing comes after it."""
        totals = ending.totals
        if ending.run.verb != "audit":
            _log.info(_said_placeholders(totals.placeholders), placeholders=totals.placeholders)
        _log.info(
            f"{ending.run.verb} ended",
            exit_code=ending.exit_code,
            threads=totals.threads,
            heads=totals.heads,
            verdicts=totals.verdicts,
            faults=totals.faults,
            salvaged=totals.salvaged,
        )
        if self._report is not None:
            self._report.end(ending)


def _said_placeholders(count: int) -> str:
    """The one plain line of a sweep by which one sees how often tools are cut off."""
    if count == 1:
        return "1 placeholder written: 1 tool call was cut off and left no result"
    return f"{count} placeholders written: {count} tool calls were cut off and left no result"


class _Lines(io.TextIOBase):
    """A stream whose lines become lines of the log."""

    def __init__(self) -> None:
        self._begun = ""

    def write(self, text: str) -> int:
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            if line.strip():
                _log.info(line.strip())
        return len(text)

    def flush(self) -> None:
        """A line that has begun waits for its end."""

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        return sys.__stderr__.fileno() if sys.__stderr__ else 2


def _binder(bound: dict[str, object]) -> Any:
    def bind(logger: Any, name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        for key, value in bound.items():
            event.setdefault(key, value)
        return event

    return bind


def _without_nothing(
    logger: Any, name: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Leave out what has no value: a thread where there is none."""
    for key in [key for key, value in event.items() if value is None]:
        del event[key]
    return event


def _place_of_error(
    logger: Any, name: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Say of an error its kind and its place."""
    told = event.pop("exc_info", None)
    error = told[1] if isinstance(told, tuple) else sys.exc_info()[1] if told is True else told
    if isinstance(error, BaseException):
        last = traceback.extract_tb(error.__traceback__)[-1:]
        event["error"] = type(error).__name__
        event["place"] = "".join(f"{os.path.basename(at.filename)}:{at.lineno}" for at in last)
    return event
