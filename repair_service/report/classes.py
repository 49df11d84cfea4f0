"""The answer of `audit --types`: the classes in use, and which of them strict msgpack refuses."""

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import IO, Literal

from repair_service.migration.classes import Named
from repair_service.report.answer import Lines, write_document
from repair_service.report.document import SCHEMA_VERSION, RunItem
from repair_service.report.table import printable
from repair_service.report.wording import counted
from repair_service.sweep.classes import ClassCounts

LIBRARY = "langgraph-checkpoint"

Strict = Literal["allowed", "refused", "unknown"]


@dataclass(frozen=True, slots=True)
class AllowList:
    """What LangGraph loads under LANGGRAPH_STRICT_MSGPACK, without any class being declared.

    Attributes:
        classes: Modules and names (`SAFE_MSGPACK_TYPES`).
        methods: Modules, names and methods (`SAFE_MSGPACK_METHODS`).
        release: Of which release of the library it is; None where none is installed that has one.
    """

    classes: frozenset[tuple[str, ...]]
    methods: frozenset[tuple[str, ...]]
    release: str | None

    @classmethod
    def installed(cls) -> "AllowList":
        """That of the library which is installed here."""
        try:
            from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_METHODS, SAFE_MSGPACK_TYPES
        except ImportError:
            return cls(frozenset(), frozenset(), None)
        try:
            release = version(LIBRARY)
        except PackageNotFoundError:
            release = "of an unknown version"
        return cls(frozenset(SAFE_MSGPACK_TYPES), frozenset(SAFE_MSGPACK_METHODS), release)

    def says(self, named: Named) -> Strict:
        """Whether an object is loaded as one.

        LangChain's constructors in JSON are loaded by LangChain, which has a list of its own.
        """
        if self.release is None or named.form == "json-1":
            return "unknown"
        if named.method is not None:
            known = (named.module, named.name, named.method) in self.methods
        else:
            known = (named.module, named.name) in self.classes
        return "allowed" if known else "refused"


def write_classes(out: IO[str], counts: ClassCounts, allowed: AllowList, *, whole: bool) -> None:
    """Write the classes for people, the most used first."""
    lines = Lines(out)
    totals = counts.totals
    what = "the whole store" if whole else "the selected heads"
    if counts.objects:
        lines.line(f"{'OBJECTS':>12}{'HEADS':>12}  STRICT   CLASS", "bold")
    for named in ordered(counts):
        strict = allowed.says(named)
        said = (
            f"{counts.objects[named]:>12,}{counts.heads[named]:>12,}  {strict:<9}{name_of(named)}"
        )
        lines.line(said, "yellow" if strict == "refused" else "")
    lines.wrapped(
        f"Looked at {what}: {counted(totals.threads, 'thread')}, {counted(totals.heads, 'head')}. "
        "Earlier checkpoints were not looked at."
    )
    if counts.unread:
        lines.wrapped(
            f"{counted(counts.unread, 'value')} could not be read (pickled, damaged, or encrypted "
            "without the key), and may name more."
        )
    if counts.others:
        lines.wrapped(f"{counts.others:,} objects are of further classes, which are not listed.")
    lines.wrapped(_about_strict(counts, allowed))


def write_classes_json(
    out: IO[str],
    run: RunItem,
    counts: ClassCounts,
    allowed: AllowList,
    *,
    whole: bool,
) -> None:
    """Write the classes for programs."""
    write_document(
        out,
        {
            "schema_version": SCHEMA_VERSION,
            "run": run,
            "whole": whole,
            "totals": {"threads": counts.totals.threads, "heads": counts.totals.heads},
            "allow_list": allowed.release,
            "classes": [
                {
                    "module": named.module,
                    "class": named.name,
                    "method": named.method,
                    "form": named.form,
                    "objects": counts.objects[named],
                    "heads": counts.heads[named],
                    "strict": allowed.says(named),
                }
                for named in ordered(counts)
            ],
            "unread_values": counts.unread,
            "further_objects": counts.others,
            "exit_code": 0,
        },
    )


def ordered(counts: ClassCounts) -> list[Named]:
    """The classes, the most used first."""
    return sorted(counts.objects, key=lambda named: (-counts.objects[named], named[:2], str(named)))


def name_of(named: Named) -> str:
    """A class as it is written in Python; what is JSON says so."""
    method = f".{named.method}" if named.method else ""
    form = "" if named.form == "msgpack" else " (JSON)"
    return printable(f"{named.module}.{named.name}{method}") + form


def _about_strict(counts: ClassCounts, allowed: AllowList) -> str:
    if allowed.release is None:
        return (
            "The library langgraph-checkpoint that is installed here has no list for "
            "LANGGRAPH_STRICT_MSGPACK, so nothing is said of it."
        )
    refused = sum(allowed.says(named) == "refused" for named in counts.objects)
    if not refused:
        return f"LANGGRAPH_STRICT_MSGPACK ({LIBRARY} {allowed.release}) refuses none of them."
    return (
        f"LANGGRAPH_STRICT_MSGPACK ({LIBRARY} {allowed.release}) refuses {refused} of them: what "
        "is refused is loaded as plain data, not as an object, unless the application names the "
        "class in allowed_msgpack_modules, or in the state of its graph."
    )
