"""The layout of a head is known by its format version and the form of its channel versions."""

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repair_service.checkpoint.layout import layout_of, stores_inline
from repair_service.checkpoint.rows import HeadRows
from repair_service.checkpoint.tasks import read_head
from repair_service.errors import Unreadable
from tests.checkpoint.heads import conversation, head_rows, stored, text

MESSAGES = {"messages": stored(conversation())}


@pytest.mark.parametrize("v", [1, 2, 3, 4])
def test_text_versions_are_pythons(v: int) -> None:
    assert layout_of(head_rows(MESSAGES, v=v).row) == f"python-{v}"


@pytest.mark.parametrize("version", [3, 3.5])
def test_numbers_are_langgraph_js(version: float) -> None:
    assert layout_of(head_rows(MESSAGES, {"messages": version}).row) == "js-4"


def test_a_checkpoint_without_any_channel_is_read_as_pythons() -> None:
    assert layout_of(head_rows({}, v=4).row) == "python-4"


@pytest.mark.parametrize("v", [0, 5, 1.5, "4", True, None, [4]])
def test_an_unknown_format_version_is_unreadable(v: Any) -> None:
    with pytest.raises(Unreadable, match="format version"):
        layout_of(head_rows(MESSAGES, v=v).row)


@pytest.mark.parametrize("v", [1, 2])
def test_a_format_version_that_langgraph_js_never_wrote_is_unreadable(v: int) -> None:
    with pytest.raises(Unreadable, match="format version"):
        layout_of(head_rows(MESSAGES, {"messages": 3}, v=v).row)


def test_versions_of_two_kinds_are_unreadable() -> None:
    rows = head_rows(MESSAGES, {"messages": text(5), "other": 5})
    with pytest.raises(Unreadable, match="mix"):
        layout_of(rows.row)


@pytest.mark.parametrize("version", [None, True, [], {}, "", "abc"])
def test_a_version_of_an_unknown_form_is_unreadable(version: Any) -> None:
    with pytest.raises(Unreadable, match="channel version"):
        layout_of(head_rows({}, {"messages": version}).row)


def test_a_saver_that_writes_no_inline_values_is_told_by_their_absence() -> None:
    """Checkpoints of format 4 written by langgraph-checkpoint-postgres before 2.0.22."""
    rows = head_rows(MESSAGES)
    old = dict(rows.row.checkpoint)
    del old["channel_values"]
    assert stores_inline(rows.row, "python-4")
    assert not stores_inline(replace(rows.row, checkpoint=old), "python-4")


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 9) | st.text(max_size=5) | st.just(text(4)),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["messages", "branch:to:tools", "tools", "__start__", "join:a+b:c"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)


@given(
    key=st.sampled_from(
        ["v", "id", "channel_versions", "versions_seen", "channel_values", "updated_channels"]
    ),
    value=ANYTHING,
    v=st.sampled_from([2, 3, 4]),
)
def test_a_malformed_document_is_unreadable_and_nothing_worse(key: str, value: Any, v: int) -> None:
    rows = head_rows(MESSAGES, v=v, seen={"tools": {"branch:to:tools": text(3)}})
    broken = dict(rows.row.checkpoint) | {key: value}
    with suppress(Unreadable):
        read_head(HeadRows(replace(rows.row, checkpoint=broken), rows.blobs))


@pytest.mark.parametrize("metadata", [{"step": None}, {"step": "3"}, {"step": True}])
def test_a_head_without_a_step_is_unreadable(metadata: dict[str, Any]) -> None:
    with pytest.raises(Unreadable, match="step"):
        read_head(head_rows(MESSAGES, metadata=metadata))


@pytest.mark.parametrize(
    "counted", [[], {"messages": 3}, {"messages": [1]}, {"messages": ["1", 2]}]
)
def test_malformed_delta_counters_are_unreadable(counted: Any) -> None:
    rows = head_rows(MESSAGES, metadata={"counters_since_delta_snapshot": counted or [1]})
    with pytest.raises(Unreadable, match="counters_since_delta_snapshot"):
        read_head(rows)


def test_a_checkpoint_that_holds_another_id_than_its_row_is_unreadable() -> None:
    with pytest.raises(Unreadable, match="another id"):
        read_head(head_rows(MESSAGES, id="1f1ecfe3-cfd4-628b-8003-000000000000"))
