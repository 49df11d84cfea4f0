"""The version that a patch gives to the channels it writes."""

import hashlib
import math
from collections.abc import Iterable

from repair_service.errors import Unreadable

_STEPS = 1024
"""Fractions of LangGraph.js versions are multiples of 1/1024: exact in binary, short in decimal."""


def next_version(versions: Iterable[str | int | float], seed: str) -> str | int | float:
    """A version greater than all of a head's, which a live run behind the same head never gives.

    Python: the greatest integer part plus one, and a fraction, written as the saver writes it
    (langgraph/checkpoint/postgres/base.py `get_next_version`); the fraction comes from the seed
    instead of chance, so two sweeps make the same row.

    LangGraph.js counts on from the greatest version (`current + 1`, langgraphjs
    checkpoint/src/base.ts), and blobs are written ON CONFLICT DO NOTHING: if the patch took the
    same number, the real result of a run that is still alive would be dropped in favour of the
    patch's. So the patch's version lies strictly between the greatest and the one after it, at a
    fraction from the seed. JavaScript compares versions as numbers, and `String(5.5224609375)`,
    Python's `str` and Postgres's text of a jsonb number agree for such a fraction.

    Args:
        versions: All versions of the head, all text or all numbers.
        seed: What the fraction is made from; the head's checkpoint id.

    Raises:
        Unreadable: A version has no integer part.
    """
    known = list(versions)
    digest = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8])
    numbers = [version for version in known if not isinstance(version, str)]
    if numbers:
        return _between(max(numbers), digest)
    greatest = max(
        (_integer_part(version) for version in known if isinstance(version, str)), default=0
    )
    fraction = (digest >> 11) / (1 << 53)
    return f"{greatest + 1:032}.{fraction:016}"


def _between(greatest: int | float, digest: int) -> float:
    """A number strictly between a version and the one after it, and no integer."""
    if abs(greatest) >= 1 << 40 or not math.isfinite(greatest):
        raise Unreadable("a channel version is no number that can be counted on from")
    step = 1 + digest % (_STEPS - 1)
    version = greatest + step / _STEPS
    return version if version % 1 else greatest + (step % (_STEPS - 1) + 1) / _STEPS


def _integer_part(version: str) -> int:
    head = version.split(".")[0]
    if not head.isdecimal():
        raise Unreadable("a channel version has no integer part")
    return int(head)
