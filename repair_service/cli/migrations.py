"""What the flags of `migrate ...` say: `--rename OLD=NEW`, `--remove NODE`, `--preset NAME`."""

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from repair_service.errors import UsageError
from repair_service.repair.verdict import Migration

PRESETS: Mapping[str, Mapping[str, str]] = {
    "create-react-agent-to-create-agent": {"agent": "model"},
}
"""Ready-made renames of nodes: langgraph.prebuilt's agent became that of langchain.agents."""

_CLASS = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")


def migration_of(
    kind: Literal["nodes", "channels", "types"] | None,
    renames: Sequence[str],
    removed: Sequence[str],
    preset: str | None,
) -> Migration | None:
    """What a verb is told to carry over; None for a verb that is none of `migrate ...`.

    Raises:
        UsageError: It cannot be meant; the message says why.
    """
    if kind is None:
        return None
    if preset is not None and preset not in PRESETS:
        raise UsageError(f"--preset {preset!r} is none; there is {', '.join(PRESETS)}.")
    pairs = dict(PRESETS[preset]) if preset is not None else {}
    for text in renames:
        old, separator, new = text.partition("=")
        if not separator or not old or not new or "=" in new:
            raise UsageError(f"--rename {text!r} is not OLD=NEW.")
        if old in pairs and pairs[old] != new:
            raise UsageError(f"--rename names {old!r} twice.")
        pairs[old] = new
    for old, new in pairs.items():
        _check(kind, old, new)
    _check_once(kind, pairs, removed)
    if both := sorted(set(removed) & pairs.keys()):
        raise UsageError(f"{both[0]!r} cannot be renamed and removed.")
    if not pairs and not removed:
        raise UsageError("nothing is to be migrated; give --rename OLD=NEW.")
    return Migration(kind, pairs, frozenset(removed))


def _check(kind: str, old: str, new: str) -> None:
    if kind == "types":
        for name in (old, new):
            if not _CLASS.fullmatch(name):
                raise UsageError(f"--rename {name!r} is no class; write module.Class=module.Class.")
        return
    what = "node" if kind == "nodes" else "state key"
    if "|" in new or ":" in new:
        raise UsageError(f"--rename {old}={new}: the new name of a {what} is the bare name.")
    if ":" in old or old.rpartition("|")[2].startswith("__") or new.startswith("__"):
        raise UsageError(f"--rename {old}={new}: that is no {what}'s name.")


def _check_once(kind: str, pairs: Mapping[str, str], removed: Sequence[str]) -> None:
    """Refuse renames of which one would have to come before another.

    What was carried over must not be concerned any more, or nobody could tell it from what was not.
    """
    for old, new in pairs.items():
        path, separator, _ = old.rpartition("|")
        place = new if kind == "types" else f"{path}{separator}{new}"
        if place == old:
            raise UsageError(f"--rename {old}={new}: that is the same name.")
        if place in pairs or place in removed:
            raise UsageError(
                f"--rename {old}={new}: {place!r} is an old name too, and what gets it cannot be "
                "told from what had it. Give the new graph names that the old one did not have."
            )
