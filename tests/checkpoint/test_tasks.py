"""Which tasks are pending at a head, and what each has written."""

import pytest

from repair_service.checkpoint.head import Head
from repair_service.checkpoint.identifiers import js_pull_task_id, pull_task_ids
from repair_service.checkpoint.rows import WriteRow
from repair_service.checkpoint.tasks import read_head
from repair_service.errors import Unreadable
from tests.checkpoint.heads import (
    HEAD,
    STEP,
    call_of,
    caller,
    conversation,
    head_rows,
    pulled,
    pushed,
    result,
    send_of,
    stored,
    text,
    write,
)

MESSAGES = {"messages": stored(conversation())}
TOOLS = "branch:to:tools"


def nodes(head: Head) -> list[str | None]:
    return [task.node for task in head.tasks]


def test_a_trigger_with_a_new_value_starts_its_node() -> None:
    head = read_head(head_rows(MESSAGES, inline={TOOLS: None}))
    (task,) = head.tasks
    assert (task.kind, task.node, task.triggers) == ("pull", "tools", (TOOLS,))
    assert (task.writes, task.proven, task.finished) == ((), True, False)
    assert head.valued == {"messages", TOOLS}


@pytest.mark.parametrize(("seen", "pending"), [(4, True), (5, False), (6, False)])
def test_a_value_that_the_node_has_seen_starts_nothing(seen: int, pending: bool) -> None:
    rows = head_rows(MESSAGES, inline={TOOLS: None}, seen={"tools": {TOOLS: text(seen)}})
    assert bool(read_head(rows).tasks) is pending


def test_a_version_without_a_value_starts_nothing() -> None:
    """Triggers are cleared a step after they fired, and their version moves then too."""
    rows = head_rows(
        MESSAGES, {"messages": text(5), TOOLS: text(5)}, seen={"tools": {TOOLS: text(3)}}
    )
    assert read_head(rows).tasks == ()


def test_an_empty_blob_is_no_value() -> None:
    rows = head_rows({**MESSAGES, TOOLS: ("empty", b"")}, v=3, seen={"tools": {TOOLS: text(3)}})
    assert read_head(rows).tasks == ()


def test_a_null_blob_is_a_value() -> None:
    assert nodes(read_head(head_rows({**MESSAGES, TOOLS: ("null", b"")}, v=3))) == ["tools"]


def test_an_input_not_taken_yet_is_pending() -> None:
    rows = head_rows({**MESSAGES, "__start__": stored({"messages": []})})
    assert nodes(read_head(rows)) == ["__start__"]


def test_the_input_of_a_functional_entrypoint_starts_the_node_that_read_it_before() -> None:
    rows = head_rows(
        {"__start__": stored({})}, seen={"workflow": {"__start__": text(1)}}, inline={}
    )
    (task,) = read_head(rows).tasks
    assert task.node == "workflow"
    assert pull_task_ids(HEAD, "", STEP, "workflow", ("__start__",))[0] in task.ids


def test_several_triggers_of_one_node_are_one_task() -> None:
    rows = head_rows(
        {**MESSAGES, "branch:a:x:tools": stored("a"), "branch:b:x:tools": stored("b")}, v=2
    )
    (task,) = read_head(rows).tasks
    assert task.triggers == ("branch:a:x:tools", "branch:b:x:tools")


def test_a_raw_pregel_node_is_started_by_the_channels_it_has_read() -> None:
    rows = head_rows(MESSAGES, seen={"worker": {"messages": text(4)}, "other": {}})
    (task,) = read_head(rows).tasks
    assert (task.node, task.triggers) == ("worker", ("messages",))


def test_numbers_are_compared_as_numbers() -> None:
    rows = head_rows(
        {**MESSAGES, TOOLS: ("json", b'"agent"')},
        {"messages": 10, TOOLS: 10},
        seen={"tools": {TOOLS: 9.5}},
    )
    (task,) = read_head(rows).tasks
    assert task.ids == (js_pull_task_id(HEAD, "", STEP, "tools", TOOLS),)


class TestOldStaticEdges:
    """In formats 1 and 2 a node writes a channel of its own name for the nodes behind it."""

    def test_the_reader_is_known_once_it_has_read(self) -> None:
        rows = head_rows(
            {**MESSAGES, "tools": stored("tools")},
            v=2,
            seen={"agent": {"tools": text(3)}, "tools": {"branch:agent:x:tools": text(4)}},
        )
        (task,) = read_head(rows).tasks
        assert (task.node, task.triggers) == ("agent", ("tools",))

    def test_before_that_nobody_is_named(self) -> None:
        rows = head_rows(
            {**MESSAGES, "agent": stored("agent")},
            v=2,
            seen={"agent": {"start:agent": text(2)}},
        )
        (task,) = read_head(rows).tasks
        assert (task.node, task.triggers, task.ids) == (None, ("agent",), ())

    def test_a_state_channel_is_no_nodes(self) -> None:
        rows = head_rows(MESSAGES, v=2, seen={"agent": {"start:agent": text(2)}})
        assert read_head(rows).tasks == ()


class TestSends:
    def sends(self, *arguments: object) -> dict[str, tuple[str, bytes]]:
        packets = [send_of("tools", argument) for argument in arguments]
        return {**MESSAGES, "__pregel_tasks": stored(packets)}

    @pytest.mark.parametrize(
        ("argument", "ids"),
        [
            ([call_of("a1")], ("a1",)),
            ([call_of("a1"), call_of("a2")], ("a1", "a2")),
            (call_of("a1"), ("a1",)),
            (
                {"__type": "tool_call_with_context", "tool_call": call_of("a1"), "state": {}},
                ("a1",),
            ),
            ({"question": "?", "id": "no call"}, ()),
            ({"messages": conversation()}, ()),
            ("text", ()),
            (None, ()),
        ],
    )
    def test_a_send_is_a_task_that_may_carry_calls(
        self, argument: object, ids: tuple[str, ...]
    ) -> None:
        (task,) = read_head(head_rows(self.sends(argument))).tasks
        assert (task.kind, task.node, task.index, task.call_ids) == ("push", "tools", 0, ids)

    def test_consumed_sends_are_no_tasks(self) -> None:
        rows = head_rows({**MESSAGES, "__pregel_tasks": stored([])})
        assert read_head(rows).tasks == ()

    def test_before_format_4_they_are_writes_of_the_parent(self) -> None:
        sends = [
            write("parent", idx, "__pregel_tasks", send_of("tools", [call_of(call)]))
            for idx, call in ((2, "a2"), (1, "a1"))
        ]
        rows = head_rows(MESSAGES, v=3, parent_writes=sends)
        assert [task.call_ids for task in read_head(rows).tasks] == [("a1",), ("a2",)]

    @pytest.mark.parametrize("seen", [b'[{"node":"tools","args":{}}]', b'[[],[{"node":"tools"}]]'])
    def test_langgraph_js_keeps_them_as_json_in_two_forms(self, seen: bytes) -> None:
        rows = head_rows(
            {**MESSAGES, "__pregel_tasks": ("json", seen)},
            {"messages": 3, "__pregel_tasks": 3},
        )
        assert nodes(read_head(rows)) == ["tools"]

    @pytest.mark.parametrize(
        "value", [{"not": "a list"}, ["text"], [1, 2], [{"node": 3}], [conversation()[0]]]
    )
    def test_sends_of_another_form_are_unreadable(self, value: object) -> None:
        rows = head_rows({**MESSAGES, "__pregel_tasks": stored(value)})
        with pytest.raises(Unreadable, match="Send"):
            read_head(rows)

    def test_a_pickled_send_is_unreadable(self) -> None:
        rows = head_rows({**MESSAGES, "__pregel_tasks": ("pickle", b"\x80\x04N.")})
        with pytest.raises(Unreadable, match="pickle"):
            read_head(rows)


class TestWrites:
    def head(self, *writes: WriteRow) -> Head:
        return read_head(head_rows(MESSAGES, inline={TOOLS: None}, writes=writes))

    def test_a_task_that_wrote_has_finished(self) -> None:
        done = write(pulled("tools"), 0, "messages", [result("a1")])
        (task,) = self.head(done).tasks
        assert (task.finished, task.failed, task.proven, task.writes) == (
            True,
            False,
            True,
            (done,),
        )

    def test_a_task_that_wrote_nothing_but_the_marker_has_finished(self) -> None:
        (task,) = self.head(write(pulled("tools"), 0, "__no_writes__", None)).tasks
        assert task.finished

    @pytest.mark.parametrize(
        ("idx", "channel"),
        [
            (-1, "__error__"),
            (0, "__error_source_node__"),
            (-4, "__resume__"),
            (-2, "__scheduled__"),
        ],
    )
    def test_what_happened_to_a_task_is_no_result(self, idx: int, channel: str) -> None:
        (task,) = self.head(write(pulled("tools"), idx, channel, "x")).tasks
        assert not task.finished
        assert task.failed is (channel == "__error__")

    def test_writes_that_only_the_path_places_are_not_proven(self) -> None:
        stranger = write("11111111-1111-1111-1111-111111111111", 0, "messages", [], PATH)
        (task,) = self.head(stranger).tasks
        assert (task.writes, task.proven) == ((stranger,), False)

    def test_an_id_goes_before_a_path(self) -> None:
        own = write(pulled("tools"), 0, "messages", [], PATH)
        exit_mode = write("00000003-1111-1111-1111-111111111111", 0, "messages", [], PATH)
        head = self.head(own, exit_mode)
        assert (head.tasks[0].writes, head.tasks[0].proven) == ((own,), True)
        assert head.stray_writes == (exit_mode,)

    def test_the_callers_writes_and_an_error_handlers_are_strays(self) -> None:
        handler = write(
            "22222222-2222-2222-2222-222222222222",
            0,
            "messages",
            [],
            f"{PATH}, node_error_handler, 0000000000",
        )
        update = caller("messages", [])
        head = self.head(handler, update)
        assert head.tasks[0].writes == ()
        assert set(head.stray_writes) == {handler, update}

    def test_a_sends_writes_are_found_by_id_and_by_index(self) -> None:
        packets = [send_of("tools", [call_of("a1")]), send_of("tools", [call_of("a2")])]
        first = write(pushed("tools", 0), 0, "messages", [result("a1")])
        path = "~__pregel_push, 0000000001, 0000000000"
        second = write("33333333-3333-3333-3333-333333333333", 0, "messages", [], path)
        rows = head_rows({**MESSAGES, "__pregel_tasks": stored(packets)}, writes=(first, second))
        tasks = read_head(rows).tasks
        assert [task.writes for task in tasks] == [(first,), (second,)]
        assert [task.proven for task in tasks] == [True, False]


PATH = "~__pregel_pull, tools"
