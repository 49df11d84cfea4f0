"""Checkpoint ids, task ids and interrupt ids: what they say, and how LangGraph makes them."""

import hashlib
import json
import re
import uuid
from collections.abc import Sequence

from xxhash import xxh3_128_hexdigest

NAMESPACE_SEPARATOR = "|"
TASK_SEPARATOR = ":"
NULL_TASK = "00000000-0000-0000-0000-000000000000"
"""The task id of writes that the caller made (a `Command`), not a task."""

PULL = "__pregel_pull"
PUSH = "__pregel_push"

_UUID6 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-6[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
_EPOCH = 0x01B21DD213814000
"""100 ns intervals from the UUID epoch (1582-10-15) to 1970-01-01 (RFC 9562, 5.6)."""


def successor(checkpoint_id: str) -> str | None:
    """The id one tick (100 ns) later, all other bits the same; None for an id that is no UUIDv6.

    A run that is still alive makes its next checkpoint later than that, so its checkpoint stands
    behind this id in the order of text, and wins.
    """
    ticks = _ticks(checkpoint_id)
    if ticks is None or ticks + 1 >= 1 << 60:
        return None
    hexadecimal = f"{ticks + 1:015x}"
    high, middle, low = hexadecimal[:8], hexadecimal[8:12], hexadecimal[12:]
    return f"{high}-{middle}-6{low}-{checkpoint_id[19:]}"


def timestamp(checkpoint_id: str) -> float | None:
    """The time in a UUIDv6, in seconds since 1970; None for an id that is no UUIDv6."""
    ticks = _ticks(checkpoint_id)
    return None if ticks is None else (ticks - _EPOCH) / 10_000_000


def first_id(moment: float) -> str:
    """What every UUIDv6 of a time or later stands behind, in the order of text.

    Args:
        moment: Seconds since 1970.
    """
    ticks = min(max(int(moment * 10_000_000) + _EPOCH, 0), (1 << 60) - 1)
    hexadecimal = f"{ticks:015x}"
    return f"{hexadecimal[:8]}-{hexadecimal[8:12]}-6{hexadecimal[12:]}"


def is_surely_older(checkpoint_id: str, first: str) -> bool:
    """Whether an id tells a time, and one before that of `first_id`."""
    return checkpoint_id < first and _UUID6.fullmatch(checkpoint_id) is not None


def _ticks(checkpoint_id: str) -> int | None:
    if not _UUID6.fullmatch(checkpoint_id):
        return None
    return int(checkpoint_id[:8] + checkpoint_id[9:13] + checkpoint_id[15:18], 16)


def node_namespace(namespace: str, node: str) -> str:
    """The namespace of a node: its name at the root, behind the parent's namespace below."""
    return f"{namespace}{NAMESPACE_SEPARATOR}{node}" if namespace else node


def pull_task_ids(
    checkpoint_id: str, namespace: str, step: int, node: str, triggers: Sequence[str]
) -> tuple[str, ...]:
    """The ids that Python releases give to the task of a triggered node, current form first.

    Args:
        checkpoint_id: The head's.
        namespace: The head's `checkpoint_ns`.
        step: The head's `metadata.step`.
        node: The node.
        triggers: The node's trigger channels, in order of text.

    Source: langgraph/pregel/_algo.py `prepare_single_task`.
    """
    parts = (node_namespace(namespace, node), str(step + 1), node, PULL, *triggers)
    return _python_ids(checkpoint_id, parts)


def push_task_ids(
    checkpoint_id: str, namespace: str, step: int, node: str, index: int
) -> tuple[str, ...]:
    """The same for the task of a scheduled Send; `index` is its place among the Sends."""
    parts = (node_namespace(namespace, node), str(step + 1), node, PUSH, str(index))
    return _python_ids(checkpoint_id, parts)


def js_pull_task_id(
    checkpoint_id: str, namespace: str, step: int, node: str, trigger: str
) -> str | None:
    """The id that LangGraph.js gives to a triggered node's task: by its first new trigger.

    None for a checkpoint id that is no UUID. Source: langgraphjs pregel/algo.ts
    `_prepareSingleTask`.
    """
    return _js_id(
        checkpoint_id, [node_namespace(namespace, node), str(step + 1), node, PULL, [trigger]]
    )


def js_push_task_id(
    checkpoint_id: str, namespace: str, step: int, node: str, index: int
) -> str | None:
    """The same for the task of a scheduled Send."""
    return _js_id(
        checkpoint_id, [node_namespace(namespace, node), str(step + 1), node, PUSH, str(index)]
    )


def update_task_id(checkpoint_id: str) -> str | None:
    """The task id of what `update_state` wrote at a checkpoint; None for an id that is no UUID.

    Releases before 0.3 store no path that would say so. Source: langgraph/pregel/main.py
    `update_state`, langgraphjs pregel/index.ts `updateState`.
    """
    try:
        return str(uuid.uuid5(uuid.UUID(checkpoint_id), "__interrupt__"))
    except ValueError:
        return None


def interrupt_id(namespace: str, node: str, task_id: str, answered: int) -> str:
    """The id of the question a task asks after it has had `answered` answers.

    Releases before 1.2 give every question of a task the id of the first one.
    Source: langgraph/types.py `_interrupt_id`.
    """
    place = f"{node_namespace(namespace, node)}{TASK_SEPARATOR}{task_id}"
    if answered:
        place = f"{place}{NAMESPACE_SEPARATOR}{answered}"
    return xxh3_128_hexdigest(place.encode())


def _python_ids(checkpoint_id: str, parts: Sequence[str]) -> tuple[str, ...]:
    """The id by XXH3-128, as releases from 0.3 on make it, and the one by SHA-1, as before."""
    try:
        text = uuid.UUID(checkpoint_id).bytes + "".join(parts).encode()
    except ValueError:
        return ()
    sha1 = hashlib.sha1(text, usedforsecurity=False).hexdigest()[:32]
    return tuple(_uuid_form(digest) for digest in (xxh3_128_hexdigest(text), sha1))


def _js_id(checkpoint_id: str, parts: Sequence[object]) -> str | None:
    try:
        place = uuid.UUID(checkpoint_id)
    except ValueError:
        return None
    return str(uuid.uuid5(place, json.dumps(parts, separators=(",", ":"), ensure_ascii=False)))


def _uuid_form(digest: str) -> str:
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:]}"
