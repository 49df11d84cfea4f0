"""Ids are recomputed as LangGraph makes them; the task ids here are from real stores."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.base.id import uuid6
from langgraph.types import _interrupt_id

from repair_service.checkpoint.identifiers import (
    interrupt_id,
    js_pull_task_id,
    js_push_task_id,
    pull_task_ids,
    push_task_ids,
    successor,
    timestamp,
)

NESTED = "worker:7e84b979-0055-60d3-7bdd-84af8198c575"


def test_the_successor_is_one_tick_later_and_the_same_in_all_else() -> None:
    head = "1f1ecfea-d474-6fff-8003-e17b2e1ec1ac"
    assert successor(head) == "1f1ecfea-d475-6000-8003-e17b2e1ec1ac"


@given(st.integers(0, (1 << 60) - 3), st.integers(0, (1 << 64) - 1))
def test_nothing_of_a_later_tick_stands_before_the_successor(ticks: int, rest: int) -> None:
    def identifier(at: int) -> str:
        digits = f"{at:015x}"
        low = f"{rest:016x}"
        return f"{digits[:8]}-{digits[8:12]}-6{digits[12:]}-{low[:4]}-{low[4:]}"

    after = successor(identifier(ticks))
    assert after is not None
    assert identifier(ticks) < after < identifier(ticks + 2)


def test_a_live_runs_next_checkpoint_stands_behind_the_successor() -> None:
    head = str(uuid6(clock_seq=3))
    after = successor(head)
    assert after is not None
    assert head < after < str(uuid6(clock_seq=4))


@pytest.mark.parametrize(
    "checkpoint_id",
    ["", "1", str(uuid.UUID(int=0)), "dce9fdcd-7b42-4f87-970d-fe24b66ae099", "x" * 36, "1F1ECFE3"],
)
def test_an_id_that_is_no_uuid6_has_neither_successor_nor_time(checkpoint_id: str) -> None:
    assert successor(checkpoint_id) is None
    assert timestamp(checkpoint_id) is None


def test_the_last_possible_id_has_no_successor() -> None:
    assert successor("ffffffff-ffff-6fff-8003-e17b2e1ec1ac") is None


def test_the_time_of_an_id_is_in_seconds_since_1970() -> None:
    # 2026-11-30T20:52:50.883Z, as the row's own `ts` says.
    assert timestamp("1f1ed000-1a8f-6930-8003-d4e02fa90fa8") == pytest.approx(1796071970.883)


def test_langgraph_0_2_hashes_with_sha_1() -> None:
    ids = pull_task_ids(
        "1f1ecfeb-02b2-6d35-8001-c1f532c0f7d8", "", 1, "tools", ("branch:agent:route:tools",)
    )
    assert ids[1] == "e23cd4c4-e5a1-7985-b303-ea254bf5658f"


def test_current_releases_hash_with_xxh3() -> None:
    head = "1f1ecfe2-f09a-6dd7-8001-ae3ec241b5ed"
    ids = pull_task_ids(head, "", 1, "tools", ("branch:to:tools",))
    assert ids[0] == "f4c81ac6-5fef-e715-81bb-cd26c30940b3"


def test_a_sends_task_is_hashed_over_its_index() -> None:
    head = "1f1ecff2-4e24-6e15-8001-b57b3d35dd62"
    ids = [push_task_ids(head, "", 1, "tools", index)[0] for index in (1, 2)]
    assert ids == ["6d47684a-4dcf-75cd-3c7d-adc14c1d8cd2", "7817b2e3-71ca-5fd7-ef30-1b228bcd93c8"]


def test_below_the_root_the_namespace_of_the_parent_stands_before_the_node() -> None:
    ids = push_task_ids("1f1ecfe5-a663-662c-8003-2ab18409c812", NESTED, 3, "tools", 0)
    assert ids[0] == "1cc67b30-a7b7-313a-04c3-28168ffe8475"


def test_the_task_of_a_node_names_its_sub_graphs_namespace() -> None:
    parent = "1f1ecfe5-a640-6798-8000-e3ef8f1e5622"
    task = pull_task_ids(parent, "", 0, "worker", ("branch:to:worker",))[0]
    assert f"worker:{task}" == NESTED


def test_langgraph_js_makes_version_5_uuids_of_a_json_list() -> None:
    head = "1f1ed000-3356-6590-8003-6cdc6b441123"
    task = js_pull_task_id(head, "", 3, "tools", "branch:to:tools")
    assert task == "cd2dfb89-cee9-5807-9648-8662b5174ee1"
    assert js_push_task_id(head, "", 3, "tools", 0) not in (None, task)


def test_no_task_id_is_made_of_a_checkpoint_id_that_is_no_uuid() -> None:
    assert pull_task_ids("7", "", 0, "tools", ("branch:to:tools",)) == ()
    assert js_pull_task_id("7", "", 0, "tools", "branch:to:tools") is None


@pytest.mark.parametrize("answered", [0, 1, 2])
def test_a_questions_id_counts_the_answers_before_it(answered: int) -> None:
    ours = interrupt_id("outer:1", "tools", "task", answered)
    assert ours == _interrupt_id("outer:1|tools:task", answered)
