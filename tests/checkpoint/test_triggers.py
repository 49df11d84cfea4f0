"""Which channels start which nodes."""

import pytest

from repair_service.checkpoint.rows import BlobRow
from repair_service.checkpoint.tasks import is_trigger, node_started_by, read_head
from repair_service.checkpoint.triggers import has_fired, joined, named_node
from repair_service.errors import Unreadable
from tests.checkpoint.heads import head_rows, stored, text


@pytest.mark.parametrize(
    ("channel", "node"),
    [
        ("branch:to:tools", "tools"),
        ("branch:to:Human.after model", "Human.after model"),
        ("branch:agent:route:tools", "tools"),
        ("branch:to:condition:tools", "tools"),
        ("branch:agent:odd:name:tools", "tools"),
        ("start:agent", "agent"),
        ("join:a+b:c", "c"),
        ("join:a+b+b2:c+d", "c+d"),
        ("__start__", "__start__"),
        ("messages", None),
        ("branch", None),
        ("branch:to:", None),
        ("start:a:b", None),
        ("join:a", None),
        ("branches:to:tools", None),
    ],
)
def test_a_channel_is_named_for_the_node_it_starts(channel: str, node: str | None) -> None:
    assert named_node(channel) == node


def test_a_nodes_own_channel_is_a_trigger_in_old_layouts_only() -> None:
    assert is_trigger("agent", "python-2", "agent")
    assert not is_trigger("agent", "python-2", "tools")
    assert not is_trigger("agent", "python-2", None)
    assert not is_trigger("agent", "python-4", "agent")
    assert is_trigger("branch:to:agent", "python-4", None)


def test_who_reads_a_nodes_own_channel_is_known_once_one_node_has_read_it() -> None:
    one = {"versions_seen": {"agent": {"tools": text(3)}, "__interrupt__": {"tools": text(3)}}}
    two = {"versions_seen": {"agent": {"tools": text(3)}, "other": {"tools": text(3)}}}
    assert node_started_by("tools", one) == "agent"
    assert node_started_by("tools", two) is None
    assert node_started_by("tools", {"versions_seen": None}) is None
    assert node_started_by("branch:to:model", {}) == "model"


def blob_of(channel: str, value: object) -> BlobRow:
    return BlobRow(channel, text(3), *stored(value))


@pytest.mark.parametrize(
    ("channel", "value", "fired"),
    [
        ("join:a+b:c", {"a"}, False),
        ("join:a+b:c", {"a", "b"}, True),
        ("join:a+b:c", set(), False),
        # The barrier may wait for one node whose name holds a plus.
        ("join:a+b:c", {"a+b"}, True),
        ("join:a+b:c", ({"a", "b"}, False), False),
        ("join:a+b:c", ({"a", "b"}, True), True),
        ("branch:to:c", (None, False), False),
        ("branch:to:c", (None, True), True),
        ("branch:to:c", "a", True),
        ("messages", ("x", False), True),
    ],
)
def test_barriers_and_deferred_nodes_wait_for_more(
    channel: str, value: object, fired: bool
) -> None:
    assert has_fired(channel, blob_of(channel, value), inline=True) is fired


def test_an_inline_value_starts_its_node() -> None:
    assert has_fired("branch:to:c", None, inline=True)


def test_what_langgraph_js_wrote_undefined_is_no_value() -> None:
    undefined = BlobRow("branch:to:c", "3", "json", b'{"lc":2,"type":"undefined"}')
    assert not has_fired("branch:to:c", undefined, inline=False)
    assert has_fired("branch:to:c", BlobRow("branch:to:c", "3", "json", b"null"), inline=False)


def test_a_barrier_whose_value_is_no_set_is_unreadable() -> None:
    with pytest.raises(Unreadable, match="barrier"):
        has_fired("join:a+b:c", blob_of("join:a+b:c", [1]), inline=True)


def test_a_value_that_was_not_fetched_is_unreadable_only_where_it_is_needed() -> None:
    missing = BlobRow("branch:to:c", text(3), "msgpack", None)
    assert has_fired("branch:to:c", missing, inline=False)
    with pytest.raises(Unreadable):
        has_fired("branch:to:c", missing, inline=True)


def test_a_barrier_is_joined_once_by_each_node() -> None:
    first = joined(None, "a", "msgpack")
    assert first == stored({"a"})
    again = joined(BlobRow("join:a+b:c", text(3), *first), "a", "msgpack")
    assert again == first
    full = BlobRow("join:a+b:c", text(3), *joined(BlobRow("j", text(3), *first), "b", "msgpack"))
    assert has_fired("join:a+b:c", full, inline=True)


def test_a_barrier_starts_its_node_when_it_is_full() -> None:
    waiting = read_head(head_rows({"join:a+b:c": stored({"a"})}))
    full = read_head(head_rows({"join:a+b:c": stored({"a", "b"})}))
    assert waiting.tasks == ()
    assert [task.node for task in full.tasks] == ["c"]
