"""A parsed page of a report, for the tests that look at what it is made of."""

import io
from collections import Counter
from collections.abc import Callable, Iterable
from html.parser import HTMLParser
from typing import Any

from repair_service.ledger.records.finding import Finding
from repair_service.ledger.records.run import Run
from repair_service.report.html import write_html

VOID = {"meta", "link", "img", "br", "hr", "input"}


class Page(HTMLParser):
    """A page; reading it fails where its elements do not nest.

    Attributes:
        elements: Each element's name and attributes, in order.
        shown: The text under the body.
        texts: The text by the innermost element's name.
    """

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.shown = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), f"{tag} has an attribute twice"
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert "svg" in self._open, f"<{tag}/> is only of SVG"
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts.setdefault(self._open[-1], []).append(data)
        if "body" in self._open:
            self.shown += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of each element with this name."""
        return [attributes for name, attributes in self.elements if name == tag]

    def attributes(self, name: str) -> list[str]:
        """The values of this attribute, wherever it stands."""
        return [values[name] or "" for _, values in self.elements if name in values]

    @property
    def shape(self) -> Counter[str]:
        """How many elements of each name."""
        return Counter(name for name, _ in self.elements)


def html_of(run: Run, findings: Callable[[], Iterable[Finding]], **options: Any) -> str:
    """The report as text."""
    out = io.StringIO()
    write_html(out, run, findings, **options)
    return out.getvalue()
