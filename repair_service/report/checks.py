"""What `doctor` says of a store: a line a check, and how to mend what is wrong."""

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Literal

import msgspec
from rich.console import Console
from rich.text import Text

from repair_service.report.document import SCHEMA_VERSION
from repair_service.store.facts import StoreFacts

Status = Literal["ok", "warn", "fail"]

STYLES: dict[Status, str] = {"ok": "green", "warn": "yellow", "fail": "bold red"}

CLOCK_TOLERANCE = 10.0
"""Seconds. Idle times are ages of ids that other machines made; a few seconds change nothing."""

READABLE_TYPES = frozenset({"msgpack", "json", "null", "empty", "bytes", "bytearray"})


class Check(msgspec.Struct, frozen=True):
    """One thing that was looked at.

    Attributes:
        name: What it is.
        status: `ok`; `warn` where something will not work or be seen; `fail` where nothing will.
        found: What was found.
        mend: What to do about it; empty where there is nothing to do.
    """

    name: str
    status: Status
    found: str
    mend: str = ""


class Sample(msgspec.Struct, frozen=True):
    """What was seen in the heads of some recent threads.

    Attributes:
        threads: How many threads were looked at.
        layouts: Heads by layout.
        unusable: Why blobs cannot be used, each reason once.
        unreadable: Why heads cannot be read, each reason once.
    """

    threads: int
    layouts: dict[str, int]
    unusable: list[str]
    unreadable: list[str]


def checks_of(
    facts: StoreFacts, *, newest_installed: int, has_key: bool, sample: Sample | None
) -> list[Check]:
    """Judge the facts about a store.

    Args:
        facts: The facts.
        newest_installed: The last migration of the saver that is installed beside this program.
        has_key: Whether LANGGRAPH_AES_KEY is set.
        sample: What recent heads look like; None where the store may not be read.
    """
    checks = [_server(facts), _tables(facts), *_rights(facts)]
    if facts.refusal is None:
        checks += [_migrations(facts, newest_installed), _layout(facts, sample)]
    checks += [_pooler(facts), _clock(facts)]
    if sample is not None:
        checks += [_types(facts), _key(facts, has_key, sample), *_heads(sample)]
    return checks


def _server(facts: StoreFacts) -> Check:
    found = f"PostgreSQL {facts.server_version}, {facts.target}"
    if facts.encoding != "UTF8":
        return Check(
            "connection", "fail", f"{found}, encoding {facts.encoding}", "LangGraph needs UTF8."
        )
    if facts.read_only:
        return Check(
            "connection",
            "warn",
            f"{found}, a standby: audit works, sweep and repair do not",
            "Give the address of the primary to write.",
        )
    return Check("connection", "ok", found)


def _tables(facts: StoreFacts) -> Check:
    if facts.refusal is not None:
        return Check("tables", "fail", "not a checkpoint store that is understood", facts.refusal)
    counted = ", ".join(
        f"{name} {'never analysed' if table.row_estimate is None else f'~{table.row_estimate}'}"
        for name, table in facts.tables.items()
        if name != "checkpoint_migrations"
    )
    return Check("tables", "ok", f"schema {facts.schema}: {counted}")


def _rights(facts: StoreFacts) -> Iterator[Check]:
    if not facts.tables:
        return
    unread = [name for name, table in facts.tables.items() if not table.may_select]
    reading, writing = " ".join(facts.rights_to_read()), " ".join(facts.rights_to_write())
    if unread:
        found = f"the role {facts.role} may not read {', '.join(unread)}"
        to_repair = f" For repairs too: {writing}" if writing else ""
        yield Check("rights", "fail", found, f"As the tables' owner: {reading}{to_repair}")
    elif writing:
        found = f"the role {facts.role} may read and not write: audit works, sweep does not"
        yield Check("rights", "warn", found, f"As the tables' owner: {writing}")
    else:
        yield Check("rights", "ok", f"the role {facts.role} may read and add rows")
    hidden = [name for name, table in facts.tables.items() if table.row_security]
    if hidden:
        found = f"row-level security may hide rows of {', '.join(hidden)}"
        yield Check("row security", "warn", found, "Use a role with BYPASSRLS, or a policy for it.")


def _migrations(facts: StoreFacts, newest_installed: int) -> Check:
    if facts.migrations is None:
        mend = "GRANT SELECT on checkpoint_migrations to see whether they are complete."
        return Check("migrations", "warn", "they may not be read", mend)
    newest = max(facts.migrations)
    known = f"{newest}; the saver installed here knows {newest_installed}"
    if newest > newest_installed:
        return Check(
            "migrations",
            "warn",
            known,
            "Upgrade langgraph-checkpoint-postgres beside this program.",
        )
    return Check("migrations", "ok", known)


def _layout(facts: StoreFacts, sample: Sample | None) -> Check:
    if sample is None:
        return Check("layout", "warn", "it cannot be seen without the right to read")
    who = {
        "python": "written by Python",
        "js": "written by LangGraph.js",
        "both": "written by Python and by LangGraph.js",
        "empty": "nothing written yet",
    }[facts.kind]
    seen = ", ".join(f"{count} {layout}" for layout, count in sample.layouts.items())
    return Check("layout", "ok", f"{who}{f'; recent heads: {seen}' if seen else ''}")


def _pooler(facts: StoreFacts) -> Check:
    if facts.pooler is None:
        return Check("pooler", "ok", "none shows")
    return Check("pooler", "ok", f"{facts.pooler}; transaction mode is fine")


def _clock(facts: StoreFacts) -> Check:
    ahead = facts.clock_ahead_seconds
    found = (
        f"the server is {abs(ahead):.1f} s {'ahead of' if ahead >= 0 else 'behind'} this machine"
    )
    if abs(ahead) > CLOCK_TOLERANCE:
        mend = "Idle times are wrong by that much. Set the clocks by NTP, or raise --min-idle."
        return Check("clock", "warn", found, mend)
    return Check("clock", "ok", found)


def _types(facts: StoreFacts) -> Check:
    unknown = [each for each in facts.types if each.partition("+")[0] not in READABLE_TYPES]
    found = ", ".join(facts.types) or "no rows yet"
    if unknown:
        return Check(
            "types",
            "warn",
            found,
            f"Values of type {', '.join(unknown)} are never opened; a thread whose messages are "
            "stored so is unreadable. Use the application's serializer without pickle_fallback.",
        )
    return Check("types", "ok", found)


def _key(facts: StoreFacts, has_key: bool, sample: Sample) -> Check:
    if sample.unusable:
        mend = "Set LANGGRAPH_AES_KEY to the application's key; install repair-service[encryption]."
        return Check("key", "fail", "; ".join(sample.unusable), mend)
    if facts.encrypted and not has_key:
        mend = "Set LANGGRAPH_AES_KEY to the application's key; install repair-service[encryption]."
        return Check("key", "fail", "there are encrypted rows, and no key is set", mend)
    if facts.encrypted:
        return Check("key", "ok", "LANGGRAPH_AES_KEY opens the rows that were looked at")
    return Check("key", "ok", "not needed: no encrypted row was seen")


def _heads(sample: Sample) -> Iterator[Check]:
    if sample.unreadable:
        found = f"of {sample.threads} recent threads some cannot be read: "
        yield Check("heads", "warn", found + "; ".join(sample.unreadable), "See them with audit.")


def exit_code_of(checks: Iterable[Check]) -> int:
    """0 where the store can be worked with, 1 where it cannot."""
    return int(any(check.status == "fail" for check in checks))


def write_checks(out: IO[str], checks: Sequence[Check], next_command: str | None) -> None:
    """Write the checks for people, at 80 columns."""
    console = Console(file=out, highlight=False, markup=False, emoji=False)
    width = min(max(console.width, 60), 120)
    for check in checks:
        label = Text(f"{check.status:<6}", style=STYLES[check.status])
        lines = textwrap.wrap(
            check.found, width - 20, break_long_words=False, break_on_hyphens=False
        )
        console.print(label + Text(f"{check.name:<14}{lines[0]}"), soft_wrap=True)
        for line in lines[1:]:
            console.print(Text(" " * 20 + line), soft_wrap=True)
        if check.mend:
            # A GRANT is copied from here, so it is not broken over lines.
            console.print(Text(" " * 20 + "-> " + check.mend), soft_wrap=True)
    counts = Counter(check.status for check in checks)
    console.print(Text(", ".join(f"{counts[status]} {status}" for status in STYLES) + "."))
    if next_command:
        console.print(Text("Next: ", style="bold") + Text(next_command), soft_wrap=True)


def write_checks_json(out: IO[str], checks: Sequence[Check], next_command: str | None) -> None:
    """Write the checks for programs."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "checks": checks,
        "exit_code": exit_code_of(checks),
        "next_command": next_command,
    }
    out.write(msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n")
