"""How a head's values are laid out: by which library, and in which version of its format."""

import re
from collections.abc import Collection, Mapping
from typing import Any

from repair_service.checkpoint.head import Layout
from repair_service.checkpoint.rows import CheckpointRow
from repair_service.errors import Unreadable

PYTHON_LAYOUTS: Mapping[int, Layout] = {
    1: "python-1",
    2: "python-2",
    3: "python-3",
    4: "python-4",
}
JS_LAYOUTS: Mapping[int, Layout] = {3: "js-3", 4: "js-4"}

NODE_CHANNEL_LAYOUTS: frozenset[Layout] = frozenset({"python-1", "python-2", "js-3"})
"""Layouts in which a node writes a channel of its own name, for the nodes behind it."""

PARENT_SENDS_LAYOUTS: frozenset[Layout] = frozenset({"python-1", "python-2", "python-3", "js-3"})
"""Layouts that keep scheduled Sends in the pending writes of the parent checkpoint."""

_TEXT_VERSION = re.compile(r"[0-9]+(\.\S+)?")
_TEXT_VERSIONS = re.compile(r"[0-9]+(\.\S+)?(\n[0-9]+(\.\S+)?)*")


def layout_of(row: CheckpointRow) -> Layout:
    """The layout of one checkpoint.

    Python's saver versions channels with text, LangGraph.js with numbers
    (langgraph/checkpoint/postgres/base.py `get_next_version`, langgraphjs checkpoint/src/base.ts).

    Raises:
        Unreadable: The format's version is unknown, or the channel versions have no known form.
    """
    layouts = JS_LAYOUTS if _numbered(channel_versions(row)) else PYTHON_LAYOUTS
    version = mapping(row.checkpoint, "the checkpoint").get("v")
    if isinstance(version, bool) or not isinstance(version, int) or version not in layouts:
        raise Unreadable(
            "the checkpoint is of an unknown format version; upgrade repair-service to one that "
            "knows it"
        )
    return layouts[version]


def channel_versions(row: CheckpointRow) -> Mapping[str, str | int | float]:
    """The versions of a checkpoint's channels, as stored.

    Raises:
        Unreadable: They are no mapping of names to versions.
    """
    checkpoint = mapping(row.checkpoint, "the checkpoint")
    versions = mapping(checkpoint.get("channel_versions"), "`channel_versions`")
    for version in versions.values():
        text = isinstance(version, str) and _TEXT_VERSION.fullmatch(version)
        number = isinstance(version, int | float) and not isinstance(version, bool)
        if not text and not number:
            raise Unreadable("a channel version is neither a version text nor a number")
    return versions


def are_version_texts(texts: Collection[str]) -> bool:
    """Whether all texts are versions as Python's saver writes them: an integer, and a fraction."""
    joined = "\n".join(texts)
    return joined.count("\n") == len(texts) - 1 and _TEXT_VERSIONS.fullmatch(joined) is not None


def versions_seen(row: CheckpointRow) -> Mapping[str, Mapping[str, str | int | float]]:
    """By node, the channel versions that it has seen, as stored.

    Raises:
        Unreadable: They are no mapping of mappings.
    """
    seen = mapping(row.checkpoint.get("versions_seen", {}), "`versions_seen`")
    for versions in seen.values():
        mapping(versions, "an entry of `versions_seen`")
    return seen


def inline_values(row: CheckpointRow) -> Mapping[str, Any]:
    """The values stored in the checkpoint itself; empty where the layout has none.

    Raises:
        Unreadable: They are no mapping.
    """
    values = mapping(row.checkpoint, "the checkpoint").get("channel_values")
    return {} if values is None else mapping(values, "`channel_values`")


def stores_inline(row: CheckpointRow, layout: Layout) -> bool:
    """Whether None, text, numbers and booleans are stored in the checkpoint itself.

    Savers before langgraph-checkpoint-postgres 2.0.22 and LangGraph.js write no `channel_values`
    at all, and would not read them.
    """
    return layout == "python-4" and row.checkpoint.get("channel_values") is not None


def mapping(value: object, what: str) -> Mapping[str, Any]:
    """The value, if it is a mapping.

    Raises:
        Unreadable: It is none.
    """
    if not isinstance(value, Mapping):
        raise Unreadable(f"{what} is no mapping; restore the row from a backup")
    return value


def _numbered(versions: Mapping[str, str | int | float]) -> bool:
    kinds = {isinstance(version, str) for version in versions.values()}
    if len(kinds) > 1:
        raise Unreadable("its channel versions mix text and numbers; restore the row from a backup")
    return kinds == {False}
