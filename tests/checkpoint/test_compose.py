"""The one new checkpoint behind a head, in the layout of the head."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from repair_service.checkpoint.compose import (
    Change,
    caller_updates,
    compose,
    is_patch,
    keeps_tasks,
    leaked_channels,
)
from repair_service.checkpoint.head import Head
from repair_service.checkpoint.identifiers import successor
from repair_service.checkpoint.rows import BlobRow, CheckpointRow, HeadRows, WriteRow
from repair_service.checkpoint.tasks import read_head
from repair_service.checkpoint.transcripts import read_transcripts
from repair_service.errors import Unreadable
from tests.checkpoint.heads import (
    HEAD,
    SERDE,
    call_of,
    caller,
    conversation,
    head_rows,
    pulled,
    result,
    send_of,
    snapshot,
    stored,
    text,
    write,
)

MENDED = ("msgpack", stored([*conversation(), result("a1")])[1])
MESSAGES = {"messages": stored(conversation())}
TOOLS, AGENT = "branch:to:tools", "branch:to:agent"
KEEP = Change({"messages": MENDED}, False, {}, frozenset(), frozenset())


def take_up(
    route: Mapping[str, tuple[str, bytes]] | None = None,
    touched: frozenset[str] = frozenset(),
    cleared: frozenset[str] = frozenset(),
) -> Change:
    return Change({"messages": MENDED}, True, route or {}, touched, cleared)


def composed(rows: HeadRows, change: Change) -> tuple[CheckpointRow, dict[str, BlobRow], Head]:
    """The new row, its blobs by channel, and the new checkpoint as a reader finds it."""
    row, blobs = compose(read_head(rows), change, timestamp="2027-01-01T00:00:00+00:00")
    versions = row.checkpoint["channel_versions"]
    found = {
        c: b
        for c, b in rows.blobs.items()
        if versions[c] == rows.row.checkpoint["channel_versions"][c]
    }
    by_channel = {blob.channel: blob for blob in blobs}
    assert all(blob.version == str(versions[blob.channel]) for blob in blobs)
    sends = tuple(write for write in rows.writes if write.channel == "__pregel_tasks")
    return row, by_channel, read_head(HeadRows(row, found | by_channel, (), sends))


def test_the_row_stands_behind_the_head_and_says_what_it_is() -> None:
    row, _, _ = composed(
        head_rows(MESSAGES, metadata={"parents": {"": "p"}, "thread_id": "t"}), KEEP
    )
    assert row.checkpoint_id == row.checkpoint["id"] == successor(HEAD)
    assert row.parent_checkpoint_id == HEAD
    assert row.checkpoint["v"] == 4
    assert row.checkpoint["ts"] == "2027-01-01T00:00:00+00:00"
    assert row.checkpoint["updated_channels"] is None
    wanted = {"source": "update", "step": 4, "parents": {"": "p"}, "thread_id": "t"}
    assert wanted.items() <= row.metadata.items()
    assert "writes" not in row.metadata


def test_a_mark_that_the_application_copied_is_no_patch() -> None:
    rows = head_rows(MESSAGES)
    row, _, _ = composed(rows, KEEP)
    assert is_patch(row)
    assert not is_patch(rows.row)
    assert not is_patch(replace(rows.row, metadata=row.metadata))


def test_the_head_is_not_changed_by_composing() -> None:
    rows = head_rows(MESSAGES, inline={TOOLS: None}, seen={"tools": {TOOLS: text(3)}})
    before = repr(rows)
    composed(rows, take_up({AGENT: ("null", b"")}))
    assert repr(rows) == before


def test_a_head_whose_id_is_no_uuid6_has_no_successor() -> None:
    rows = head_rows(MESSAGES, checkpoint_id="7")
    with pytest.raises(Unreadable, match="UUIDv6"):
        composed(rows, KEEP)


def test_what_a_caller_wrote_beside_an_answer_is_named() -> None:
    """`Command(resume=..., update=..., goto=...)`: a patch would drop all but the answer."""
    sibling = write(pulled("tools"), 0, "other", 1)
    rows = head_rows(
        MESSAGES,
        inline={TOOLS: None},
        writes=[caller("__resume__", "v"), caller("topic", 1), caller(AGENT, None), sibling],
    )
    assert caller_updates(read_head(rows)) == {"topic", AGENT}


class TestKeeping:
    rows = head_rows(
        {**MESSAGES, "other": stored({"a": 1})},
        inline={AGENT: None, "count": 3},
        seen={"agent": {AGENT: text(4)}},
    )

    def test_only_the_list_changes(self) -> None:
        row, blobs, after = composed(self.rows, KEEP)
        before = self.rows.row.checkpoint
        versions = dict(row.checkpoint["channel_versions"])
        assert versions.pop("messages") > text(5)
        assert versions == {c: text(5) for c in ("other", AGENT, "count")}
        assert row.checkpoint["channel_values"] == before["channel_values"]
        assert row.checkpoint["versions_seen"] == before["versions_seen"]
        assert {c: (b.type, b.blob) for c, b in blobs.items()} == {"messages": MENDED}
        assert [m.id for m in read_transcripts(after, (), False)["messages"].messages] == [
            "h1",
            "ai1",
            "t-a1",
        ]

    def test_the_same_tasks_stay_pending(self) -> None:
        _, _, after = composed(self.rows, KEEP)
        assert [(task.node, task.triggers) for task in after.tasks] == [("agent", (AGENT,))]

    def test_the_sends_stay(self) -> None:
        sends = {**MESSAGES, "__pregel_tasks": stored([send_of("tools", [call_of("a1")])])}
        _, blobs, after = composed(head_rows(sends), KEEP)
        assert set(blobs) == {"messages"}
        assert [task.call_ids for task in after.tasks] == [("a1",)]

    def test_before_format_4_sends_cannot_stay(self) -> None:
        """They are writes of the parent, which is the head then."""
        sends = [write("p", 0, "__pregel_tasks", send_of("tools", [call_of("a1")]))]
        old = head_rows(MESSAGES, v=3, parent_writes=sends)
        assert not keeps_tasks(read_head(old))
        assert composed(old, KEEP)[2].tasks == ()
        assert keeps_tasks(read_head(self.rows))

    def test_a_node_that_reads_the_list_by_version_has_seen_the_mended_one(self) -> None:
        rows = head_rows(
            MESSAGES,
            seen={
                "done": {"messages": text(5)},
                "pending": {"messages": text(4)},
                "__interrupt__": {"messages": text(5)},
                "__snapshot_bumps__": {"messages": text(5)},
            },
        )
        row, _, after = composed(rows, KEEP)
        seen = row.checkpoint["versions_seen"]
        new = row.checkpoint["channel_versions"]["messages"]
        assert seen["done"] == {"messages": new}
        assert seen["pending"] == {"messages": text(4)}
        # A breakpoint that the thread stopped at does not fire again because a list was mended.
        assert seen["__interrupt__"] == {"messages": new}
        assert seen["__snapshot_bumps__"] == {"messages": text(5)}
        assert [task.node for task in after.tasks] == ["pending"]


class TestTakingUp:
    @pytest.mark.parametrize("v", [3, 4])
    def test_the_step_is_seen_and_cleared_and_the_route_is_next(self, v: int) -> None:
        trigger = {TOOLS: ("null", b"")}
        rows = head_rows(
            {**MESSAGES, **trigger} if v == 3 else MESSAGES,
            inline={TOOLS: None} if v == 4 else None,
            v=v,
            seen={"agent": {AGENT: text(4)}, "__interrupt__": {"messages": text(5)}},
        )
        row, blobs, after = composed(rows, take_up({AGENT: ("null", b"")}))
        assert [(task.node, task.triggers) for task in after.tasks] == [("agent", (AGENT,))]
        assert row.checkpoint["versions_seen"]["tools"] == {TOOLS: text(5)}
        assert row.checkpoint["channel_versions"][TOOLS] > text(5)
        assert TOOLS not in after.valued
        # It was a step, so breakpoints before the next node fire.
        assert row.checkpoint["versions_seen"]["__interrupt__"] == {"messages": text(5)}
        if v == 3:
            assert (blobs[TOOLS].type, blobs[TOOLS].blob) == ("empty", None)
            assert (blobs[AGENT].type, blobs[AGENT].blob) == ("null", b"")
            assert "channel_values" not in row.checkpoint
        else:
            assert set(blobs) == {"messages"}
            assert row.checkpoint["channel_values"] == {AGENT: None}

    def test_without_a_route_the_thread_is_at_rest(self) -> None:
        _, _, after = composed(head_rows(MESSAGES, inline={TOOLS: None}), take_up())
        assert after.tasks == ()

    def test_a_text_is_routed_inline_and_a_list_as_a_blob(self) -> None:
        route = {AGENT: stored("tools"), "branch:to:b": stored(["x"])}
        row, blobs, _ = composed(head_rows(MESSAGES, inline={TOOLS: None}), take_up(route))
        assert row.checkpoint["channel_values"] == {AGENT: "tools"}
        assert (blobs["branch:to:b"].type, blobs["branch:to:b"].blob) == stored(["x"])

    def test_a_route_to_the_node_that_ran_is_not_cleared(self) -> None:
        rows = head_rows(MESSAGES, inline={TOOLS: None})
        _, _, after = composed(rows, take_up({TOOLS: ("null", b"")}))
        assert [task.node for task in after.tasks] == ["tools"]

    def test_channels_that_live_for_one_step_are_cleared(self) -> None:
        rows = head_rows(MESSAGES, inline={TOOLS: None, "jump_to": "model"})
        row, _, after = composed(rows, take_up(cleared=frozenset({"jump_to", "absent"})))
        assert "jump_to" not in row.checkpoint["channel_values"]
        assert row.checkpoint["channel_versions"]["jump_to"] > text(5)
        assert "absent" not in row.checkpoint["channel_versions"]
        assert after.valued == {"messages"}

    def test_a_barrier_and_a_deferred_node_go_on_waiting(self) -> None:
        waiting = {"join:a+b:c": stored({"a"}), "branch:to:late": stored((None, False))}
        row, blobs, after = composed(
            head_rows({**MESSAGES, **waiting}, inline={TOOLS: None}), take_up()
        )
        assert waiting.keys() <= after.valued
        assert not waiting.keys() & blobs.keys()
        assert row.checkpoint["channel_versions"]["join:a+b:c"] == text(5)

    def test_a_barrier_is_joined_by_what_a_sibling_wrote(self) -> None:
        rows = head_rows({**MESSAGES, "join:tools+b:c": stored({"b"})}, inline={TOOLS: None})
        _, blobs, after = composed(rows, take_up({"join:tools+b:c": stored("tools")}))
        barrier = blobs["join:tools+b:c"]
        assert SERDE.loads_typed((barrier.type, barrier.blob)) == {"b", "tools"}
        assert [task.node for task in after.tasks] == ["c"]

    def test_sends_are_consumed(self) -> None:
        sends = {"__pregel_tasks": stored([send_of("tools", [call_of("a1")])])}
        row, blobs, after = composed(
            head_rows({**MESSAGES, **sends}), take_up({AGENT: ("null", b"")})
        )
        sent = blobs["__pregel_tasks"]
        assert (sent.type, sent.blob) == stored([])
        # LangGraph gives a node that a Send started an entry without any channel.
        assert row.checkpoint["versions_seen"]["tools"] == {}
        assert [task.node for task in after.tasks] == ["agent"]

    def test_consumed_sends_are_not_written_again(self) -> None:
        rows = head_rows({**MESSAGES, "__pregel_tasks": stored([])}, inline={TOOLS: None})
        row, blobs, _ = composed(rows, take_up())
        assert "__pregel_tasks" not in blobs
        assert row.checkpoint["channel_versions"]["__pregel_tasks"] == text(5)

    def test_before_format_4_sends_are_consumed_by_not_being_the_parents(self) -> None:
        sends = [write("p", 0, "__pregel_tasks", send_of("tools", [call_of("a1")]))]
        rows = head_rows(
            MESSAGES, v=3, parent_writes=sends, pending_sends=[], metadata={"writes": {"a": 1}}
        )
        row, blobs, after = composed(rows, take_up({AGENT: ("null", b"")}))
        assert "__pregel_tasks" not in row.checkpoint["channel_versions"]
        assert set(blobs) == {"messages", AGENT}
        assert [task.node for task in after.tasks] == ["agent"]
        assert row.checkpoint["pending_sends"] == []
        assert row.metadata["writes"] is None

    def test_a_raw_pregel_node_of_the_step_does_not_run_on_the_mended_list(self) -> None:
        rows = head_rows(MESSAGES, seen={"worker": {"messages": text(4)}})
        _, _, after = composed(rows, take_up())
        assert after.tasks == ()
        assert "messages" in after.valued

    def test_old_static_edges_are_taken_up_with_the_channel_nobody_is_known_to_read(self) -> None:
        rows = head_rows(
            {**MESSAGES, "agent": stored("agent"), "branch:agent:x:tools": stored("agent")},
            v=2,
            seen={"agent": {"start:agent": text(2), "tools": text(3)}},
        )
        row, blobs, after = composed(rows, take_up({"tools": stored("tools")}))
        assert [(task.node, task.triggers) for task in after.tasks] == [("agent", ("tools",))]
        assert blobs["agent"].type == blobs["branch:agent:x:tools"].type == "empty"
        assert row.checkpoint["v"] == 2


class TestLangGraphJs:
    rows = head_rows(
        {"messages": ("json", b"[]"), TOOLS: ("json", b'"agent"')},
        {"messages": 5, TOOLS: 5, "__start__": 2},
        seen={"agent": {AGENT: 4}},
    )
    change = Change(
        {"messages": ("json", b'[{"type":"human"}]')},
        True,
        {AGENT: ("json", b"null")},
        frozenset(),
        frozenset(),
    )

    def test_every_value_is_a_blob_and_every_version_a_number(self) -> None:
        row, blobs, after = composed(self.rows, self.change)
        versions = row.checkpoint["channel_versions"]
        assert versions["__start__"] == 2
        assert 5 < versions[TOOLS] == versions[AGENT] == versions["messages"] < 6
        assert {channel: (b.type, b.blob) for channel, b in blobs.items()} == {
            "messages": ("json", b'[{"type":"human"}]'),
            TOOLS: ("empty", None),
            AGENT: ("json", b"null"),
        }
        assert "channel_values" not in row.checkpoint
        assert [task.node for task in after.tasks] == ["agent"]

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            (b'[{"node":"tools","args":{}}]', b"[]"),
            (b'[["s"],[{"node":"tools","args":{}}]]', b'[["s"],[]]'),
        ],
    )
    def test_sends_are_consumed_in_the_form_they_had(self, before: bytes, after: bytes) -> None:
        rows = head_rows(
            {"messages": ("json", b"[]"), "__pregel_tasks": ("json", before)},
            {"messages": 5, "__pregel_tasks": 5},
        )
        _, blobs, head = composed(rows, self.change)
        assert blobs["__pregel_tasks"].blob == after
        assert [task.node for task in head.tasks] == ["agent"]


def test_a_saver_without_inline_values_gets_blobs() -> None:
    rows = head_rows({**MESSAGES, TOOLS: ("null", b"")})
    old = dict(rows.row.checkpoint)
    del old["channel_values"]
    rows = HeadRows(replace(rows.row, checkpoint=old), rows.blobs)
    row, blobs, after = composed(rows, take_up({AGENT: ("null", b"")}))
    assert "channel_values" not in row.checkpoint
    assert (blobs[AGENT].type, blobs[TOOLS].type) == ("null", "empty")
    assert [task.node for task in after.tasks] == ["agent"]


class TestCiphers:
    def test_a_value_is_stored_with_the_cipher_it_had(self) -> None:
        rows = head_rows({**MESSAGES, TOOLS: stored("x")}, v=3)
        encrypted = replace(rows.blobs["messages"], cipher="aes")
        rows = HeadRows(rows.row, {**rows.blobs, "messages": encrypted})
        _, blobs, _ = composed(rows, take_up({AGENT: ("null", b"")}))
        assert blobs["messages"].cipher == "aes"
        # A channel without a value takes the cipher of the others; `empty` is never encrypted.
        assert blobs[AGENT].cipher == "aes"
        assert blobs[TOOLS].cipher is None

    def test_a_rebuilt_list_takes_the_cipher_of_the_writes(self) -> None:
        wrote = replace(write("x", 0, "messages", conversation()), cipher="aes")
        rows = head_rows(
            {},
            {"messages": text(5)},
            metadata={"counters_since_delta_snapshot": {"messages": [1, 1]}},
            writes=[wrote],
        )
        assert composed(rows, KEEP)[1]["messages"].cipher == "aes"


class TestDeltaChannels:
    def rows(self, *writes: WriteRow, **more: Any) -> HeadRows:
        return head_rows(
            more.pop("values", {}),
            more.pop("versions", {"messages": text(5), TOOLS: text(5), "notes": text(4)}),
            inline=more.pop("inline", {TOOLS: None}),
            metadata={"counters_since_delta_snapshot": {"messages": [3, 3], "notes": [1, 3]}},
            writes=writes,
            **more,
        )

    def test_a_mended_list_is_a_snapshot_and_counted_from_zero(self) -> None:
        row, blobs, after = composed(self.rows(), take_up())
        assert row.checkpoint["channel_values"] == {"messages": True}
        assert (blobs["messages"].type, blobs["messages"].blob) == snapshot(
            [*conversation(), result("a1")]
        )
        assert row.metadata["counters_since_delta_snapshot"] == {"notes": [1, 4]}
        assert after.delta_channels == {"messages", "notes"}

    def test_a_channel_that_a_sibling_wrote_gets_a_version_and_no_value(self) -> None:
        wrote = write(pulled("tools"), 0, "files", {"a": 1})
        row, blobs, _ = composed(self.rows(wrote), take_up(touched=frozenset({"files"})))
        assert row.checkpoint["channel_versions"]["files"] > text(5)
        assert "files" not in row.checkpoint["channel_values"]
        assert "files" not in blobs
        counted = row.metadata["counters_since_delta_snapshot"]
        assert counted == {"files": [1, 1], "notes": [1, 4]}

    def test_a_snapshot_is_not_named_by_the_version_that_a_sibling_made(self) -> None:
        """Else a reader would stop there, and miss what the sibling wrote."""
        rows = self.rows(
            values={"notes": snapshot({"a": 1})},
            versions={"messages": text(5), "notes": text(5)},
            inline={"notes": True},
        )
        row, _, _ = composed(rows, take_up(touched=frozenset({"notes"})))
        assert row.checkpoint["channel_values"] == {"messages": True}

    def test_a_snapshot_that_nobody_touched_stays(self) -> None:
        rows = self.rows(
            values={"notes": snapshot({"a": 1})},
            versions={"messages": text(5), "notes": text(5)},
            inline={"notes": True},
        )
        row, _, after = composed(rows, KEEP)
        assert row.checkpoint["channel_values"] == {"messages": True, "notes": True}
        assert "notes" in after.valued

    def test_without_counters_left_the_metadata_names_none(self) -> None:
        rows = head_rows(
            {},
            {"messages": text(5)},
            metadata={"counters_since_delta_snapshot": {"messages": [1, 1]}},
        )
        assert "counters_since_delta_snapshot" not in composed(rows, KEEP)[0].metadata

    def test_writes_that_are_not_taken_up_leak_into_a_channel_without_a_snapshot(self) -> None:
        """A reader rebuilds it from all of the head's writes, whoever made them."""
        sibling = write(pulled("tools"), 0, "notes", {"a": 1})
        update = caller("notes", {"b": 1})
        touched = take_up(touched=frozenset({"notes"}))
        assert leaked_channels(read_head(self.rows(sibling)), touched) == frozenset()
        assert leaked_channels(read_head(self.rows(sibling)), KEEP) == {"notes"}
        assert leaked_channels(read_head(self.rows(sibling, update)), touched) == {"notes"}

    def test_a_channel_that_has_a_snapshot_leaks_nothing(self) -> None:
        rows = self.rows(
            caller("notes", {"b": 1}),
            caller("messages", []),
            values={"notes": snapshot({"a": 1})},
            versions={"messages": text(5), "notes": text(5)},
            inline={"notes": True},
        )
        assert leaked_channels(read_head(rows), KEEP) == frozenset()
