"""A head's transcript for people: a line a message, and marks for what the patch changes."""

import textwrap
from typing import IO

from rich.console import Console
from rich.text import Text

from repair_service.report.table import printable
from repair_service.report.transcript import ChannelView, HeadView, MessageLine

MARKS = {"insert": "+", "move": ">", "remove": "-"}
STYLES = {"insert": "green", "move": "cyan", "remove": "red"}
SAID = {
    "insert": "to be put in",
    "move": "to be moved here from #{index}",
    "remove": "to be removed",
}
INDENT = 25
"""Where the last column starts: behind the mark, index, kind and size."""


class TranscriptTable:
    """Writes heads with their lists of messages."""

    def __init__(self, out: IO[str]) -> None:
        """Prepare the table.

        Args:
            out: Where it is written to; in colour when that is a terminal (and NO_COLOR is unset).
        """
        self._console = Console(file=out, highlight=False, markup=False, emoji=False)
        self._width = min(max(self._console.width, 60), 120)

    def add(self, view: HeadView) -> None:
        """Write one head."""
        item = view.item
        namespace = f", namespace {printable(item.checkpoint_ns)}" if item.checkpoint_ns else ""
        self._line(Text(f"thread {printable(item.thread_id)}{namespace}", style="bold"))
        self._line(Text(f"checkpoint {item.checkpoint_id}: {item.verdict}"))
        if item.reason:
            self._wrapped(printable(item.reason), "  ")
        for channel in view.channels:
            self._channel(channel)
        if item.new_checkpoint_id:
            self._line(Text(f"  new checkpoint {item.new_checkpoint_id}, {_resume(view)}"))
        self._line(Text())

    def _channel(self, channel: ChannelView) -> None:
        count = sum(message.index is not None for message in channel.messages)
        self._line(Text(f"  channel {printable(channel.channel)}, {count} messages"))
        self._line(Text("       # KIND      BYTES   NAME, CALLS", style="dim"))
        for message in channel.messages:
            self._message(message)

    def _message(self, message: MessageLine) -> None:
        mark = MARKS.get(message.change or "", "!" if message.faults else " ")
        index = "" if message.index is None else str(message.index)
        start = f"  {mark}{index:>5} {printable(message.kind):<8} {message.bytes:>6}  "
        style = STYLES.get(message.change or "", "yellow" if message.faults else "")
        lines = _about(message) or [""]
        self._line(Text(start + lines[0], style=style))
        for line in lines[1:]:
            self._line(Text(" " * len(start) + line, style=style))
        if message.content:
            for paragraph in message.content.splitlines():
                self._wrapped(printable(paragraph), " " * INDENT)

    def _wrapped(self, text: str, indent: str) -> None:
        for line in textwrap.wrap(
            text, self._width, initial_indent=indent, subsequent_indent=indent
        ):
            self._line(Text(line))

    def _line(self, text: Text) -> None:
        self._console.print(text, soft_wrap=True)


def _about(message: MessageLine) -> list[str]:
    """What a message calls or answers, what is wrong with it, and what becomes of it."""
    lines = []
    if message.name and not message.answers:
        lines.append(printable(message.name))
    for call in message.calls:
        invalid = " (invalid)" if call.invalid else ""
        lines.append(f"calls {printable(call.name or '?')} {printable(call.id or '?')}{invalid}")
    if message.answers is not None:
        name = f"{printable(message.name)} " if message.name else ""
        lines.append(f"{name}answers {printable(message.answers)}")
    if message.faults:
        lines.append("! " + ", ".join(_counted(message.faults)))
    if message.change:
        what = " (placeholder)" if message.placeholder and message.change == "insert" else ""
        if message.change == "insert" and not message.placeholder:
            what = " (salvaged)"
        said = SAID[message.change].format(index=message.index)
        lines.append(f"{MARKS[message.change]} {said}{what}")
    return lines


def _counted(kinds: list[str]) -> list[str]:
    return [
        kind if kinds.count(kind) == 1 else f"{kinds.count(kind)} {kind}"
        for kind in dict.fromkeys(kinds)
    ]


def _resume(view: HeadView) -> str:
    item = view.item
    if item.resume == "continue":
        source = f" ({item.route_source})" if item.route_source else ""
        return f"goes on at {', '.join(map(printable, item.route)) or 'its end'}{source}"
    if item.resume == "park":
        return "parked for a new message"
    return "pending tasks stay as they are"
