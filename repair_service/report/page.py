"""What every page is made with: one look, escaped text, and styles that a policy names by hash."""

import base64
import hashlib
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined

from repair_service.report.wording import counted, said_time

MARKS = {
    "failed": "✕",
    "unreadable": "?",
    "manual": "!",
    "repairable": "→",
    "drifted": "»",
    "repaired": "✓",
    "waiting": "…",
    "active": "•",
    "healthy": "✓",
}
"""A sign for each verdict, for those who do not tell the colours apart at a glance."""


def page_environment(package: str) -> Environment:
    """The templates of a package; text in them is escaped, and a missing value is an error.

    Args:
        package: The package with the directory `templates`.
    """
    environment = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["counted"] = counted
    environment.filters["time"] = said_time
    environment.globals["marks"] = MARKS
    return environment


@cache
def report_style() -> str:
    """The style of reports, as it stands in each page."""
    return (files("repair_service.report") / "templates" / "report.css").read_text("utf-8")


def digest(style: str) -> str:
    """A style's hash, by which a Content-Security-Policy allows it and no other."""
    return base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
