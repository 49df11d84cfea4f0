"""The commands in a text for people, and whether this release takes them."""

import re
import shlex
from collections.abc import Iterator

from repair_service.cli.app import main

COMMAND = "repair-service"


def accepted(arguments: list[str]) -> bool:
    """Whether the command takes these arguments, which --help looks over before it shows itself."""
    return main([*arguments, "--help"]) == 0


def commands_in(markdown: str) -> Iterator[list[str]]:
    """The arguments of each call of the command, in indented blocks and between backticks."""
    for line in _lines(markdown):
        words = shlex.split(line, comments=True)
        if words and words[0].rpartition("/")[2] == COMMAND:
            yield words[1:]


def _lines(markdown: str) -> Iterator[str]:
    # A line of a paragraph that is broken inside backticks goes on in the next line.
    for span in re.findall(r"`([^`]+)`", markdown):
        yield " ".join(span.split())
    for line in markdown.replace("\\\n", " ").splitlines():
        if line.startswith("    "):
            yield line.strip()
