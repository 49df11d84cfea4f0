"""Pages: in the look of the reports, complete without a script."""

import re
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment
from markupsafe import Markup, escape
from starlette.responses import HTMLResponse

from repair_service import __version__
from repair_service.repair.durations import said_duration
from repair_service.report.page import page_environment, report_style
from repair_service.report.table import printable

_COMMAND = re.compile(r"`([^`]+)`")


@cache
def page_style() -> str:
    """What pages need beside the style of reports."""
    return (files("repair_service.worker.http") / "templates" / "page.css").read_text("utf-8")


def page(template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """One page.

    Args:
        template: The template's name.
        status: The HTTP status.
        values: What it shows; text is escaped.
    """
    text = _environment().get_template(template).render(**values)
    return HTMLResponse(text, status_code=status)


@cache
def _environment() -> Environment:
    environment = page_environment("repair_service.worker.http")
    environment.filters["duration"] = said_duration
    environment.filters["printable"] = printable
    environment.filters["code"] = _code
    styles = (report_style(), page_style())
    environment.globals["styles"] = [Markup(each) for each in styles]  # noqa: S704  # our own files
    environment.globals["version"] = __version__
    return environment


def _code(text: str) -> Markup:
    """The text, escaped, with what stands between backquotes as code."""
    escaped = _COMMAND.sub(r"<code>\g<1></code>", str(escape(text)))
    return Markup(escaped)  # noqa: S704  # escaped before the only markup was put in
