"""`--shard`: which part of the threads a run is for."""

import re
from collections.abc import Mapping

from repair_service.sweep.shard import Shard

INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
"""Kubernetes counts the pods of an Indexed Job in it, from 0."""

MOST = 10_000
"""Each shard walks over all thread ids, so that thousands of them are a slip of the pen."""


def parse_shard(text: str, environment: Mapping[str, str]) -> Shard:
    """Read a shard.

    Args:
        text: `I/N`, the I-th of N parts, from 1; or `N` alone, where the environment says which.
        environment: Where JOB_COMPLETION_INDEX may be.

    Raises:
        ValueError: It is no such thing; the message says how to write one.
    """
    found = re.fullmatch(r"(?:(\d{1,6})/)?(\d{1,6})", text.strip(), re.ASCII)
    if found is None:
        raise ValueError(f"{text!r} is no shard; write 2/8 for the second of eight parts")
    count = int(found[2])
    if not 1 <= count <= MOST:
        raise ValueError(f"{text!r} is no shard; there are 1 to {MOST} parts")
    if found[1] is not None:
        index = int(found[1])
    else:
        pod = environment.get(INDEX_VARIABLE, "")
        if not re.fullmatch(r"\d{1,6}", pod, re.ASCII):
            raise ValueError(
                f"{text!r} does not say which part, and {INDEX_VARIABLE} is not set; write 2/8 for "
                "the second of eight parts"
            )
        index = int(pod) + 1
    if not 1 <= index <= count:
        raise ValueError(f"there is no part {index} of {count}; parts are counted from 1")
    return Shard(index, count)
