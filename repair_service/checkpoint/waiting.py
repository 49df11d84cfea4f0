"""Whether a task's question was answered.

A question is an `__interrupt__` write of the task. An answer comes in one of two ways: under the
null task id, for the one question that is open (`Command(resume=value)`), or by a map from question
to answer, which is stored nowhere until the task ends. What a task was told before it asked again
is kept in its own `__resume__` list, and the caller's write stays behind as well. So an answer
counts only where the rows show that it was given to this question; otherwise the question is open.

Source: langgraph/types.py (`interrupt`), langgraph/pregel/_algo.py (`_scratchpad`),
langgraph/pregel/_runner.py (`commit`), langgraph/pregel/_task_status.py.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from repair_service.checkpoint.identifiers import NULL_TASK, interrupt_id
from repair_service.checkpoint.rows import WriteRow
from repair_service.checkpoint.values import constructed, decode
from repair_service.errors import Unreadable

QUESTION = "__interrupt__"
ANSWER = "__resume__"
CONTROL = frozenset({"__error__", "__error_source_node__", QUESTION, ANSWER, "__scheduled__"})
"""Channels that say what happened to a task, not what it produced (_task_status.py)."""

Question = Literal["none", "open", "answered"]


@dataclass(frozen=True, slots=True)
class Asking:
    """What one task of the step wrote.

    Attributes:
        namespace: The head's namespace.
        node: The task's node; None where it is not known.
        writes: Its writes.
    """

    namespace: str
    node: str | None
    writes: Sequence[WriteRow]


def is_finished(writes: Iterable[WriteRow]) -> bool:
    """Whether a task wrote more than what happened to it; LangGraph takes it as finished then."""
    return any(write.channel not in CONTROL for write in writes)


def question_of(task: Asking, others: Iterable[Asking], caller: Iterable[WriteRow]) -> Question:
    """Whether a task has asked, and whether the rows show that it was answered.

    Args:
        task: The task.
        others: All other writers of the step, finished or not.
        caller: The writes under the null task id.
    """
    if not _wrote(task, QUESTION):
        return "none"
    if is_finished(task.writes):
        return "answered"
    try:
        told = _told(task)
        if _asked_before(task, len(told)):
            return "answered"
        return "answered" if _caller_answers(task, told, list(others), caller) else "open"
    except Unreadable:
        return "open"


def asked_in_a_call(stray: Iterable[WriteRow]) -> bool:
    """Whether a task that a pending node called (functional API) has an open question.

    Such a task asks for itself; its node asks too, but only once all that it called has ended.

    Args:
        stray: The writes of a head that belong to none of its own tasks.
    """
    asking: dict[str, list[WriteRow]] = {}
    for write in stray:
        asking.setdefault(write.task_id, []).append(write)
    caller = asking.pop(NULL_TASK, [])
    if any(write.channel == ANSWER for write in caller):
        return False
    return any(
        any(write.channel == QUESTION for write in writes) and not is_finished(writes)
        for writes in asking.values()
    )


def _caller_answers(
    task: Asking, told: list[Any], others: Sequence[Asking], caller: Iterable[WriteRow]
) -> bool:
    """Whether the caller's answer is for this task's question, and no older one's."""
    answers = [write for write in caller if write.channel == ANSWER]
    if not answers or len(_questions(task)) > 1:
        return False
    answer = _value(answers[0])
    if answer in told:
        return False
    for other in others:
        if not _wrote(other, QUESTION) and not _wrote(other, ANSWER):
            continue
        # The answer may have been the other one's: the rows must show what that one was told.
        other_told = _told(other)
        if not is_finished(other.writes) or not other_told or answer in other_told:
            return False
    return True


def _asked_before(task: Asking, told: int) -> bool:
    """Whether the question's id says that one of the task's own answers is its answer.

    Only ids that count are proof: older releases give every question the id of the first.
    """
    if task.node is None:
        return False
    identifiers = [_identifier(question) for question in _questions(task)]
    task_id = task.writes[0].task_id
    counted = {interrupt_id(task.namespace, task.node, task_id, place) for place in range(1, told)}
    return bool(identifiers) and all(identifier in counted for identifier in identifiers)


def _questions(task: Asking) -> list[Any]:
    questions: list[Any] = []
    for write in task.writes:
        if write.channel == QUESTION:
            value = _value(write)
            questions.extend(value if isinstance(value, list) else [value])
    return questions


def _identifier(question: object) -> str | None:
    found = constructed(question)
    fields = found[1] if found is not None else question
    identifier = fields.get("id") if isinstance(fields, dict) else None
    return identifier if isinstance(identifier, str) else None


def _told(task: Asking) -> list[Any]:
    """The answers that a task has taken so far, in order."""
    told: list[Any] = []
    for write in task.writes:
        if write.channel == ANSWER:
            value = _value(write)
            told.extend(value if isinstance(value, list) else [value])
    return told


def _value(write: WriteRow) -> Any:
    if write.problem is not None:
        raise Unreadable(write.problem)
    return decode(write.type, write.blob)


def _wrote(task: Asking, channel: str) -> bool:
    return any(write.channel == channel for write in task.writes)
