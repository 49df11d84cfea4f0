"""What counts as a fault, one rule a test. Lists are written as they stand in a thread."""

import pytest
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage

from repair_service.transcript.fault import FaultKind
from repair_service.transcript.message import Message
from repair_service.transcript.pairing import find_faults, open_calls, tail_index
from tests.transcript.make import ai, cancelled, human, read, result

ALL = frozenset(FaultKind)


def faults(*messages: BaseMessage, allow: frozenset[str] = frozenset()) -> list[tuple[object, ...]]:
    """Kind, message index, call id and mend of each finding."""
    return [
        (found.kind, found.message_index, found.call and found.call.id, found.mend)
        for found in find_faults(read(*messages), allow=allow)
    ]


def signed(*ids: str) -> AIMessage:
    thinking = {"type": "thinking", "thinking": "x", "signature": "s"}
    return ai(*ids, content=[thinking])


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [human(), AIMessage("hello"), human()],
        [human(), ai("a"), result("a"), AIMessage("ok")],
        [human(), ai("a", "b"), result("a"), result("b")],
        [human(), ai("a", "b"), result("b"), result("a"), AIMessage("the order is no fault")],
        [human(), ai("a"), result("a"), ai("a"), result("a"), human(), ai("a"), result("a")],
        [human(), ai("a", invalid=["b"]), result("a"), result("b")],
        [human(), ai("a"), cancelled("a"), human()],
        [human(), AIMessage([{"type": "server_tool_use", "id": "srvtoolu_1", "name": "x"}])],
        [signed("a"), result("a"), signed()],
    ],
)
def test_a_list_that_every_provider_takes_has_no_fault(messages: list[BaseMessage]) -> None:
    assert faults(*messages) == []


def test_a_call_without_a_result() -> None:
    assert faults(ai("a")) == [("unanswered_call", 0, "a", "placeholder")]
    assert faults(human(), ai("a", "b"), result("a"), human()) == [
        ("unanswered_call", 1, "b", "placeholder")
    ]


def test_a_malformed_call_without_a_result() -> None:
    assert faults(ai(invalid=["a"]), human()) == [
        ("unanswered_invalid_call", 0, "a", "placeholder")
    ]


def test_a_call_that_text_cannot_answer_is_left_to_a_person() -> None:
    click = AIMessage([{"type": "computer_call", "id": "x", "call_id": "a"}])
    assert faults(click) == [("unanswered_call", 0, "a", "none")]
    assert faults(click, result("a")) == []


def test_a_result_behind_another_message_is_misplaced() -> None:
    assert faults(ai("a"), human(), result("a")) == [("misplaced_result", 2, "a", "move")]
    assert faults(ai("a"), SystemMessage("x"), result("a")) == [
        ("misplaced_result", 2, "a", "move")
    ]


def test_a_result_among_those_of_a_later_message_is_misplaced() -> None:
    assert faults(ai("a"), ai("b"), result("a"), result("b")) == [
        ("misplaced_result", 2, "a", "move")
    ]


def test_an_id_used_again_is_answered_once_for_each_use() -> None:
    assert faults(ai("a"), result("a"), human(), ai("a"), human()) == [
        ("unanswered_call", 3, "a", "placeholder")
    ]
    assert faults(ai("a"), human(), ai("a"), result("a")) == [
        ("unanswered_call", 0, "a", "placeholder")
    ]


def test_a_stray_result_answers_the_nearest_call_before_it() -> None:
    assert faults(ai("a"), human(), ai("a"), human(), result("a")) == [
        ("unanswered_call", 0, "a", "placeholder"),
        ("misplaced_result", 4, "a", "move"),
    ]


def test_an_equal_second_result_is_spare() -> None:
    assert faults(ai("a"), result("a", id="1"), human(), result("a", id="2")) == [
        ("duplicate_result", 3, "a", "remove")
    ]
    assert faults(ai("a"), result("a"), result("a")) == [("duplicate_result", 2, "a", "remove")]


@pytest.mark.parametrize(
    "other",
    [
        result("a", "else"),
        result("a", status="error"),
        result("a", artifact={"rows": 1}),
    ],
)
def test_a_different_second_result_is_left_to_a_person(other: BaseMessage) -> None:
    assert faults(ai("a"), result("a"), human(), other) == [("duplicate_result", 3, "a", "none")]
    assert faults(ai("a"), result("a"), human(), other, allow=ALL) == [
        ("duplicate_result", 3, "a", "remove")
    ]


def test_a_placeholder_gives_way_to_a_real_result() -> None:
    assert faults(ai("a"), result("a"), human(), cancelled("a")) == [
        ("duplicate_result", 3, "a", "remove")
    ]
    assert faults(ai("a"), cancelled("a"), human(), result("a")) == [
        ("duplicate_result", 1, "a", "remove"),
        ("misplaced_result", 3, "a", "move"),
    ]
    assert faults(ai("a"), cancelled("a"), result("a")) == [("duplicate_result", 1, "a", "remove")]


def test_a_result_without_a_call_before_it_is_an_orphan() -> None:
    for messages in (
        [result("a"), human()],
        [human(), result("a"), ai("a"), result("a")],
        [ai("a"), result("a"), result("b")],
        [ai("a"), result("a"), result("")],
    ):
        found = faults(*messages)
        assert [(kind, call, mend) for kind, _, call, mend in found] == [
            ("orphan_result", None, "none")
        ]
    assert faults(result("a"), allow=ALL) == [("orphan_result", 0, None, "remove")]


def test_a_call_id_that_is_empty_null_or_used_twice_in_a_message() -> None:
    assert faults(ai("a", ""), result("a")) == [("bad_call_id", 0, "", "none")]
    assert faults(ai(None)) == [("bad_call_id", 0, None, "none")]
    assert faults(ai("a", "a"), result("a"), result("a")) == [("bad_call_id", 0, "a", "none")]


def test_a_message_with_a_bad_id_is_not_answered_in_part() -> None:
    assert faults(ai("a", ""), allow=ALL) == [
        ("unanswered_call", 0, "a", "none"),
        ("bad_call_id", 0, "", "none"),
    ]


def test_content_that_names_other_calls_is_left_to_a_person() -> None:
    block = {"type": "tool_use", "id": "b", "name": "search", "input": {}}
    assert faults(ai("a", content=[block]), result("a")) == [("call_mismatch", 0, None, "none")]
    assert faults(ai("a", content=[block]), allow=ALL) == [
        ("unanswered_call", 0, "a", "none"),
        ("call_mismatch", 0, None, "none"),
    ]


def test_a_mend_before_signed_thinking_is_left_to_a_person() -> None:
    assert faults(ai("a"), human(), signed()) == [
        ("unanswered_call", 0, "a", "placeholder"),
        ("bound_prefix", 0, None, "none"),
    ]
    assert faults(ai("a"), human(), signed(), result("a")) == [
        ("bound_prefix", 0, None, "none"),
        ("misplaced_result", 3, "a", "move"),
    ]
    assert faults(ai("a"), result("a"), human(), result("a"), signed()) == [
        ("duplicate_result", 3, "a", "remove"),
        ("bound_prefix", 3, None, "none"),
    ]


def test_a_mend_behind_signed_thinking_is_bound_by_nothing() -> None:
    assert faults(signed("a"), human()) == [("unanswered_call", 0, "a", "placeholder")]


def test_a_bound_prefix_is_no_fault_where_it_is_allowed_or_nothing_changes() -> None:
    assert faults(ai("a"), human(), signed(), allow=ALL) == [
        ("unanswered_call", 0, "a", "placeholder")
    ]
    assert faults(result("x"), human(), signed()) == [("orphan_result", 0, None, "none")]


def test_a_result_found_elsewhere_is_uncommitted() -> None:
    messages = read(ai("a", "b", invalid=["c"]), result("b"))
    found = find_faults(messages, salvage=dict.fromkeys([(0, 0), (0, 1), (0, 2)], messages[1]))
    assert [(each.kind, each.call_position, each.mend) for each in found] == [
        ("uncommitted_result", 0, "salvage"),
        ("uncommitted_result", 2, "salvage"),
    ]


def test_open_calls_are_those_with_an_id_and_no_result_anywhere() -> None:
    messages = read(ai("a", "b"), result("b"), human(), ai("a", "", invalid=["c"]), human())
    assert [(index, position, call.id) for index, position, call in open_calls(messages)] == [
        (0, 0, "a"),
        (3, 0, "a"),
        (3, 2, "c"),
    ]


@pytest.mark.parametrize(
    ("messages", "index"),
    [
        ([], None),
        ([human()], None),
        ([human(), ai("a")], 1),
        ([human(), ai("a", "b"), result("a")], 1),
        ([ai("a"), human()], None),
        ([human(), AIMessage("x")], None),
        ([result("a")], None),
    ],
)
def test_the_tail_is_the_last_message_with_calls_and_only_results_behind_it(
    messages: list[BaseMessage], index: int | None
) -> None:
    assert tail_index(read(*messages)) == index


def test_a_long_list_is_judged_in_one_pass() -> None:
    """A list in which each id is used thousands of times; a quadratic rule takes minutes here."""
    turn = read(human(), ai("a", "b"), result("b"), human(), result("a"))
    messages: tuple[Message, ...] = turn * 20_000
    found = find_faults(messages)
    assert len(found) == 20_000
    assert len(open_calls(messages)) == 0
