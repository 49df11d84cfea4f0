"""Which messages a patch puts in, moves and takes out, as `show` marks them."""

import json
from typing import Any

from repair_service.checkpoint.rows import BlobRow, CheckpointRow, HeadRows, ThreadRows
from repair_service.repair.diagnosis import Diagnosis
from repair_service.repair.verdict import Verdict
from repair_service.report.transcript import MessageLine, view_head
from tests.report.examples import patch

Message = dict[str, Any]


def human(text: str) -> Message:
    return {"type": "human", "content": text, "id": text}


def tool(call: str, text: str = "r") -> Message:
    return {"type": "tool", "content": text, "tool_call_id": call, "id": f"{call}{text}"}


def shown(before: list[Message], after: list[Message]) -> list[MessageLine]:
    row = CheckpointRow(
        "t",
        "",
        "1ef00000-0000-6000-8000-000000000000",
        None,
        {
            "v": 4,
            "channel_values": {},
            "channel_versions": {"messages": "00000000000000000000000000000001.0000000000000000"},
            "versions_seen": {},
        },
        {"step": 1},
    )
    version = row.checkpoint["channel_versions"]["messages"]

    def blob(messages: list[Message]) -> BlobRow:
        return BlobRow("messages", version, "json", json.dumps(messages).encode())

    thread = ThreadRows({"": HeadRows(row, {"messages": blob(before)})})
    judged = Diagnosis(
        "t",
        "",
        row.checkpoint_id,
        Verdict.REPAIRABLE,
        "",
        channel="messages",
        patch=patch(row, (blob(after),)),
    )
    [channel] = view_head(thread, judged, content=False).channels
    return channel.messages


def marks(before: list[Message], after: list[Message]) -> list[tuple[int | None, str | None]]:
    return [(line.index, line.change) for line in shown(before, after)]


def test_a_list_that_stays_has_no_mark() -> None:
    same = [human("a"), tool("c")]
    assert marks(same, same) == [(0, None), (1, None)]


def test_what_is_new_has_no_old_index() -> None:
    assert marks([human("a"), human("b")], [human("a"), tool("c"), human("b")]) == [
        (0, None),
        (None, "insert"),
        (1, None),
    ]


def test_what_moves_is_shown_once_at_its_new_place() -> None:
    a, b, result = human("a"), human("b"), tool("c")
    assert marks([a, b, result], [a, result, b]) == [(0, None), (2, "move"), (1, None)]


def test_what_is_taken_out_stays_in_view() -> None:
    a, result = human("a"), tool("c")
    assert marks([a, result, result], [a, result]) == [(0, None), (1, None), (2, "remove")]


def test_every_message_of_both_lists_is_shown_once() -> None:
    a, b, one, two = human("a"), human("b"), tool("1"), tool("2")
    lines = marks([two, a, one, b, one], [a, one, two, tool("3"), b])
    assert sorted(index for index, _ in lines if index is not None) == [0, 1, 2, 3, 4]
    assert sum(change == "insert" for _, change in lines) == 1
    assert sum(change == "remove" for _, change in lines) == 1
    assert sum(change == "move" for _, change in lines) == 1
