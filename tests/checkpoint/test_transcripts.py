"""The lists of messages of a head, and what makes one unreadable."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from langchain_core.messages import HumanMessage, RemoveMessage
from langgraph.types import Overwrite

from repair_service.checkpoint.rows import BlobRow, HeadRows, WriteRow
from repair_service.checkpoint.tasks import read_head
from repair_service.checkpoint.transcripts import needs_history, read_transcripts
from repair_service.errors import Unreadable
from tests.checkpoint.heads import (
    HEAD,
    PARENT,
    conversation,
    head_rows,
    result,
    snapshot,
    stored,
    text,
    write,
)

GRANDPARENT = "1f1ecfe3-cfc5-6305-8001-3352242f96aa"


def read(
    rows: HeadRows, ancestors: Sequence[HeadRows] = (), pruned: bool = False
) -> dict[str, list[str | None]]:
    found = read_transcripts(read_head(rows), ancestors, pruned)
    return {name: [message.id for message in found[name].messages] for name in found}


def test_every_list_of_messages_is_found_whatever_its_channel_is_called() -> None:
    rows = head_rows(
        {
            "chat_history": stored(conversation()),
            "drafts": stored([HumanMessage("x", id="d1")]),
            "documents": stored([{"page": 1}]),
            "topic": stored({"a": 1}),
        },
        inline={"count": 3, "branch:to:tools": None},
    )
    assert read(rows) == {"chat_history": ["h1", "ai1"], "drafts": ["d1"]}


def test_the_state_of_a_root_channel_is_looked_into() -> None:
    assert read(head_rows({"__root__": stored({"messages": conversation()})})) == {
        "__root__": ["h1", "ai1"]
    }


def test_an_input_not_taken_yet_is_no_transcript() -> None:
    assert read(head_rows({"__start__": stored(conversation())})) == {}


@pytest.mark.parametrize("length", [0, 1, 2, 40, 200, -1])
def test_a_list_cut_off_anywhere_is_unreadable(length: int) -> None:
    rows = head_rows({"messages": ("msgpack", stored(conversation())[1][:length])})
    with pytest.raises(Unreadable, match="messages"):
        read(rows)


def test_encrypted_bytes_without_the_key_are_unreadable() -> None:
    rows = head_rows({})
    blob = BlobRow("messages", text(5), "msgpack", b"?", "aes", "no key was given")
    versions = {**rows.row.checkpoint, "channel_versions": {"messages": text(5)}}
    rows = HeadRows(replace(rows.row, checkpoint=versions), {"messages": blob})
    with pytest.raises(Unreadable, match="no key was given"):
        read(rows)


def test_a_list_whose_bytes_are_gone_is_unreadable() -> None:
    rows = head_rows({"messages": stored(conversation())})
    gone = HeadRows(rows.row, {"messages": replace(rows.blobs["messages"], blob=None)})
    with pytest.raises(Unreadable, match="no bytes"):
        read(gone)


@pytest.mark.parametrize("type_", ["pickle", "zstd"])
def test_a_value_that_nobody_may_open_is_unreadable_where_it_may_be_the_list(type_: str) -> None:
    with pytest.raises(Unreadable, match=type_):
        read(head_rows({"messages": (type_, b"?")}))
    beside = head_rows({"frame": (type_, b"?"), "messages": stored(conversation())})
    assert read(beside) == {"messages": ["h1", "ai1"]}


def test_a_missing_blob_is_unreadable_where_every_version_has_one() -> None:
    rows = head_rows({"topic": stored("x")}, {"topic": text(5), "messages": text(4)}, v=3)
    with pytest.raises(Unreadable, match="'messages' is missing"):
        read(rows)


class TestALostBlobInFormat4:
    """A channel without a value is usual there: it may be one that is never stored."""

    rows = head_rows({}, {"messages": text(5), "run_count": text(5)})

    def test_a_channel_that_held_messages_before_is_unreadable(self) -> None:
        assert "messages" in needs_history(read_head(self.rows))
        before = head_rows(
            {},
            checkpoint_id=PARENT,
            parent=None,
            writes=[write("t", 0, "messages", conversation(), at=PARENT)],
        )
        with pytest.raises(Unreadable, match="'messages' is missing"):
            read(self.rows, [before])

    def test_a_channel_that_never_did_is_not(self) -> None:
        before = head_rows({"topic": stored({})}, checkpoint_id=PARENT, parent=None)
        assert read(self.rows, [before]) == {}

    def test_history_is_not_asked_for_where_a_list_is_there(self) -> None:
        rows = head_rows(
            {"messages": stored(conversation())}, {"messages": text(5), "run_count": text(5)}
        )
        assert needs_history(read_head(rows)) == frozenset()


COUNTED = {"counters_since_delta_snapshot": {"messages": [2, 3], "files": [1, 3]}}


class TestDeltaChannels:
    def head(self, **more: object) -> HeadRows:
        return head_rows(
            {},
            {"messages": text(5), "files": text(5)},
            metadata=COUNTED,
            writes=[write("sibling", 0, "messages", [result("a1")])],
            **more,  # type: ignore[arg-type]
        )

    def ancestor(
        self,
        checkpoint_id: str,
        parent: str | None,
        *writes: WriteRow,
        values: dict[str, tuple[str, bytes]] | None = None,
        inline: dict[str, object] | None = None,
    ) -> HeadRows:
        return head_rows(
            values or {}, checkpoint_id=checkpoint_id, parent=parent, writes=writes, inline=inline
        )

    def test_a_list_is_rebuilt_from_the_writes_of_all_checkpoints_before(self) -> None:
        human, ai = conversation()
        ancestors = [
            self.ancestor(PARENT, GRANDPARENT, write("b", 0, "messages", [ai])),
            self.ancestor(GRANDPARENT, None, write("a", 0, "messages", human)),
        ]
        assert needs_history(read_head(self.head())) == {"messages", "files"}
        # The head's own writes are not part of its state.
        assert read(self.head(), ancestors) == {"messages": ["h1", "ai1"]}

    def test_the_nearest_stored_value_is_the_start_and_its_own_writes_follow_it(self) -> None:
        old = write("x", 0, "messages", [HumanMessage("old", id="old")])
        ancestors = [
            self.ancestor(
                PARENT,
                GRANDPARENT,
                write("b", 0, "messages", [result("a1")]),
                values={"messages": snapshot(conversation())},
                inline={"messages": True},
            ),
            self.ancestor(GRANDPARENT, None, old),
        ]
        assert read(self.head(), ancestors) == {"messages": ["h1", "ai1", "t-a1"]}

    def test_a_plain_list_of_an_earlier_channel_type_is_a_start_too(self) -> None:
        ancestors = [
            self.ancestor(PARENT, GRANDPARENT, values={"messages": stored(conversation())}),
            self.ancestor(GRANDPARENT, None, write("x", 0, "messages", [HumanMessage("old")])),
        ]
        assert read(self.head(), ancestors) == {"messages": ["h1", "ai1"]}

    def test_writes_apply_by_task_path_then_task_then_place(self) -> None:
        """With `durability="exit"` a run's writes hang on one checkpoint, told apart by path."""
        human, ai = conversation()
        later = "~~0000000001~__pregel_pull, agent"
        ancestors = [
            self.ancestor(
                PARENT,
                None,
                write("0", 0, "messages", [ai], later),
                write("1", 1, "messages", [RemoveMessage(id="x1")], "~__pregel_pull, a"),
                write("1", 0, "messages", [HumanMessage("x", id="x1")], "~__pregel_pull, a"),
                write("9", 0, "messages", [human], ""),
            )
        ]
        assert read(self.head(), ancestors) == {"messages": ["h1", "ai1"]}

    def test_an_overwrite_starts_the_list_anew(self) -> None:
        ancestors = [
            self.ancestor(
                PARENT,
                GRANDPARENT,
                write("b", 0, "messages", Overwrite([HumanMessage("n", id="n1")])),
            ),
            self.ancestor(GRANDPARENT, None, write("a", 0, "messages", conversation())),
        ]
        assert read(self.head(), ancestors) == {"messages": ["n1"]}

    def test_another_kind_of_delta_channel_is_no_transcript(self) -> None:
        ancestors = [
            self.ancestor(
                PARENT,
                None,
                write("a", 0, "files", {"a.txt": {"content": ["x"]}}),
                write("a", 1, "messages", conversation()),
            )
        ]
        assert set(read(self.head(), ancestors)) == {"messages"}

    def test_pruned_history_is_unreadable(self) -> None:
        before = self.ancestor(PARENT, GRANDPARENT, write("b", 0, "messages", conversation()))
        with pytest.raises(Unreadable, match="pruned"):
            read(self.head(), [before], pruned=True)

    def test_history_that_was_not_loaded_is_unreadable(self) -> None:
        with pytest.raises(Unreadable, match="pruned"):
            read(self.head())

    def test_a_gap_in_the_history_is_unreadable(self) -> None:
        before = self.ancestor(GRANDPARENT, None, write("b", 0, "messages", conversation()))
        with pytest.raises(Unreadable, match="not complete"):
            read(self.head(), [before])

    def test_a_snapshot_whose_blob_was_lost_is_unreadable(self) -> None:
        before = self.ancestor(
            PARENT, None, write("b", 0, "messages", conversation()), inline={"messages": True}
        )
        with pytest.raises(Unreadable, match="snapshot"):
            read(self.head(), [before])

    def test_a_write_that_cannot_be_read_is_unreadable(self) -> None:
        broken = WriteRow(PARENT, "a", 0, "messages", "msgpack", stored(conversation())[1][:-9])
        with pytest.raises(Unreadable, match="messages"):
            read(self.head(), [self.ancestor(PARENT, None, broken)])

    def test_a_snapshot_at_the_head_needs_no_history(self) -> None:
        rows = head_rows(
            {"messages": snapshot(conversation())},
            inline={"messages": True},
            metadata={"counters_since_delta_snapshot": {"files": [1, 1]}},
        )
        head = read_head(rows)
        assert head.delta_channels == {"messages", "files"}
        assert needs_history(head) == frozenset()
        assert read(rows) == {"messages": ["h1", "ai1"]}

    def test_a_delta_channel_of_langgraph_js_is_unreadable(self) -> None:
        rows = head_rows(
            {"messages": ("empty", b"")}, {"messages": 3}, metadata=COUNTED, parent=None
        )
        with pytest.raises(Unreadable, match=r"LangGraph\.js"):
            read(rows)

    def test_a_snapshot_of_langgraph_js_is_unreadable(self) -> None:
        """Behind a snapshot no counter names the channel any more."""
        whole = b'{"lc":2,"type":"delta_snapshot","value":[]}'
        rows = head_rows(
            {"messages": ("json", whole), "journal": ("json", b"[]")},
            {"messages": 3, "journal": 3},
        )
        with pytest.raises(Unreadable, match=r"LangGraph\.js"):
            read(rows)


def test_the_head_is_the_one_that_was_asked_for() -> None:
    assert read_head(head_rows({})).row.checkpoint_id == HEAD
