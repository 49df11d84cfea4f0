"""What is pending behind a migration: what was meant, and what is read back."""

import hashlib
from collections.abc import Iterable, Sequence

from repair_service.checkpoint.head import Head
from repair_service.checkpoint.rows import WriteRow
from repair_service.migration.carry import Rows
from repair_service.migration.moves import Move


def meant_pending(moves: Sequence[Move], done: Sequence[Rows]) -> frozenset[str]:
    """What is meant to be pending behind a patch, a text for each task and for each write.

    Args:
        moves: The moves of the heads.
        done: The new rows of each.
    """
    meant: set[str] = set()
    for move, rows in zip(moves, done, strict=True):
        for moved in move.tasks:
            task = moved.task
            what = moved.triggers if moved.index is None else (f"send {moved.index}",)
            state = (task.finished, task.failed, task.interrupted, task.answered)
            meant.add(_said(move.namespace, str(moved.node), what, state))
        meant |= _written(move.namespace, rows.writes)
    return frozenset(meant)


def found_pending(heads: Iterable[Head]) -> frozenset[str]:
    """The same, of heads as they are stored."""
    found: set[str] = set()
    for head in heads:
        namespace = head.row.checkpoint_ns
        for task in head.tasks:
            what = tuple(sorted(task.triggers)) if task.kind == "pull" else (f"send {task.index}",)
            state = (task.finished, task.failed, task.interrupted, task.answered)
            found.add(_said(namespace, str(task.node), what, state))
        found |= _written(namespace, head.rows.writes)
    return frozenset(found)


def _said(namespace: str, node: str, what: Sequence[str], state: Sequence[bool]) -> str:
    return repr((namespace, node, tuple(what), tuple(state)))


def _written(namespace: str, writes: Iterable[WriteRow]) -> set[str]:
    return {
        repr(
            (
                namespace,
                write.task_id,
                write.idx,
                write.channel,
                write.type,
                hashlib.sha256(write.blob).hexdigest(),
            )
        )
        for write in writes
    }
