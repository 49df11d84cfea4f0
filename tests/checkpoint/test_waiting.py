"""An answer counts only where the rows show that it was given to the open question.

The rows are those that programs left which asked, were answered, and died at each of these points
(LangGraph 1.2.24); `run` below names the point.
"""

from typing import NamedTuple

import pytest

from repair_service.checkpoint.head import Task
from repair_service.checkpoint.identifiers import interrupt_id
from repair_service.checkpoint.rows import WriteRow
from repair_service.checkpoint.tasks import read_head
from tests.checkpoint.heads import (
    caller,
    conversation,
    head_rows,
    pulled,
    question,
    stored,
    write,
)

FIRST, SECOND = pulled("ask"), pulled("other")


def asks(task_id: str, node: str, place: int = 0) -> WriteRow:
    return write(task_id, -3, "__interrupt__", question(interrupt_id("", node, task_id, place)))


def told(task_id: str, *answers: object) -> WriteRow:
    return write(task_id, -4, "__resume__", list(answers))


def wrote(task_id: str) -> WriteRow:
    return write(task_id, 1, "x", [1])


class Judged(NamedTuple):
    interrupted: bool
    answered: bool


OPEN = Judged(True, False)
ANSWERED = Judged(False, True)
NEITHER = Judged(False, False)


def judge(*writes: WriteRow) -> dict[str | None, Judged]:
    rows = head_rows(
        {"messages": stored(conversation())},
        inline={"branch:to:ask": None, "branch:to:other": None},
        writes=writes,
    )

    def judged(task: Task) -> Judged:
        return Judged(task.interrupted, task.answered)

    return {task.node: judged(task) for task in read_head(rows).tasks}


@pytest.mark.parametrize(
    ("run", "writes", "expected"),
    [
        ("asked nothing", [], NEITHER),
        ("waiting", [asks(FIRST, "ask")], OPEN),
        ("answered, then died", [asks(FIRST, "ask"), caller("__resume__", "v")], ANSWERED),
        (
            "asked a second time; the caller's answer to the first stays behind",
            [asks(FIRST, "ask", 1), told(FIRST, "v"), caller("__resume__", "v")],
            OPEN,
        ),
        (
            "second question answered, then died",
            [asks(FIRST, "ask", 1), told(FIRST, "v"), caller("__resume__", "w")],
            ANSWERED,
        ),
        (
            "both answered alike, then died: not to be told from the second being open",
            [asks(FIRST, "ask", 1), told(FIRST, "v"), caller("__resume__", "v")],
            OPEN,
        ),
        (
            "second answered by a map, whose answer is stored nowhere; the third is open",
            [asks(FIRST, "ask", 2), told(FIRST, "v", "w"), caller("__resume__", "v")],
            OPEN,
        ),
        (
            "second answered, then failed",
            [asks(FIRST, "ask", 1), told(FIRST, "v", "w"), caller("__resume__", "w")],
            ANSWERED,
        ),
        (
            "asked twice in a release that gives every question the first id",
            [asks(FIRST, "ask", 0), told(FIRST, "v"), caller("__resume__", "v")],
            OPEN,
        ),
        ("first answered by a map, second open", [asks(FIRST, "ask", 1), told(FIRST, "v")], OPEN),
        ("finished", [asks(FIRST, "ask"), told(FIRST, "v"), wrote(FIRST)], ANSWERED),
        (
            "answered in parts that are true and 1, which are equal in Python",
            [asks(FIRST, "ask", 1), told(FIRST, True), caller("__resume__", 1)],
            OPEN,
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_one_task(run: str, writes: list[WriteRow], expected: Judged) -> None:
    assert judge(*writes)["ask"] == expected


@pytest.mark.parametrize(
    ("run", "writes", "expected"),
    [
        (
            "both wait; one answered by a map, then died",
            [asks(FIRST, "ask"), asks(SECOND, "other")],
            (OPEN, OPEN),
        ),
        (
            "both wait, and an answer that names none of them",
            [asks(FIRST, "ask"), asks(SECOND, "other"), caller("__resume__", "v")],
            (OPEN, OPEN),
        ),
        (
            "one finished by a map, the other still waits",
            [asks(FIRST, "ask"), asks(SECOND, "other"), told(SECOND, "v"), wrote(SECOND)],
            (OPEN, ANSWERED),
        ),
        (
            "one finished by a map, the other was answered, then died",
            [
                asks(FIRST, "ask"),
                asks(SECOND, "other"),
                told(SECOND, "v"),
                wrote(SECOND),
                caller("__resume__", "w"),
            ],
            (ANSWERED, ANSWERED),
        ),
        (
            "the caller's answer was taken by the one, and the other asked in the same run",
            [
                asks(FIRST, "ask"),
                asks(SECOND, "other"),
                told(SECOND, "v"),
                wrote(SECOND),
                caller("__resume__", "v"),
            ],
            (OPEN, ANSWERED),
        ),
        (
            "the one finished and what it was told is not to be seen: its sub-graph had asked",
            [
                asks(FIRST, "ask"),
                asks(SECOND, "other"),
                wrote(SECOND),
                caller("__resume__", "v"),
            ],
            (OPEN, ANSWERED),
        ),
        (
            "one waits, the other never asked",
            [asks(FIRST, "ask"), wrote(SECOND), caller("__resume__", "v")],
            (ANSWERED, NEITHER),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_two_tasks(run: str, writes: list[WriteRow], expected: tuple[Judged, Judged]) -> None:
    found = judge(*writes)
    assert (found["ask"], found["other"]) == expected


def test_an_answer_that_cannot_be_read_answers_nothing() -> None:
    pickled = WriteRow("head", caller("__resume__", 1).task_id, -4, "__resume__", "pickle", b"x")
    assert judge(asks(FIRST, "ask"), pickled)["ask"] == OPEN


def test_several_questions_of_one_task_are_not_answered_by_one_value() -> None:
    both = [*question("a" * 32), *question("b" * 32)]
    asked = write(FIRST, -3, "__interrupt__", both)
    assert judge(asked, caller("__resume__", "v"))["ask"] == OPEN


def test_a_question_of_langgraph_0_2_has_no_id() -> None:
    asked = write(FIRST, -3, "__interrupt__", [{"value": "?", "resumable": True, "ns": []}])
    assert judge(asked)["ask"] == OPEN
    assert judge(asked, caller("__resume__", "v"))["ask"] == ANSWERED
