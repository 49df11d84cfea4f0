"""What has another id all over a thread once its heads have moved."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from repair_service.checkpoint.identifiers import (
    TASK_SEPARATOR,
    interrupt_id,
    node_namespace,
)
from repair_service.migration.moves import Move

MOST_QUESTIONS = 100
"""Questions of one task whose ids are recomputed: more than a node asks in a row."""


@dataclass(frozen=True, slots=True)
class Renumbering:
    """What the moves of a thread's heads give new names to, all over the thread.

    Attributes:
        questions: By stored id of a question, its new one.
        places: By stored place of a task, its new one.
        namespaces: By stored namespace, the new one.
        checkpoints: By stored namespace, the new checkpoint's id.
    """

    questions: Mapping[str, str]
    places: Mapping[str, str]
    namespaces: Mapping[str, str]
    checkpoints: Mapping[str, str]


def renumbering(moves: Sequence[Move]) -> Renumbering:
    """What the moves of a thread's heads give new names to."""
    questions: dict[str, str] = {}
    places: dict[str, str] = {}
    for move in moves:
        old_namespace = move.head.row.checkpoint_ns
        for moved in move.tasks:
            if moved.old_id is None or moved.new_id is None or moved.node is None:
                continue
            node = str(moved.task.node)
            old_place = f"{node_namespace(old_namespace, node)}{TASK_SEPARATOR}{moved.old_id}"
            new_place = f"{node_namespace(move.namespace, moved.node)}{TASK_SEPARATOR}"
            places[old_place] = f"{new_place}{moved.new_id}"
            for asked in range(MOST_QUESTIONS):
                old = interrupt_id(old_namespace, node, moved.old_id, asked)
                questions[old] = interrupt_id(move.namespace, moved.node, moved.new_id, asked)
    return Renumbering(
        questions,
        places,
        {move.head.row.checkpoint_ns: move.namespace for move in moves},
        {move.head.row.checkpoint_ns: move.checkpoint_id for move in moves},
    )
