"""Threads with several lists of messages: whose calls the pending tasks answer."""

from dataclasses import replace

import msgspec

from repair_service.checkpoint.rows import ThreadRows
from repair_service.repair.diagnosis import Diagnosis
from repair_service.repair.fleet import NoFleet
from repair_service.repair.judge import diagnose
from repair_service.repair.verdict import Policy, Verdict
from tests.repair.conftest import LoadThread

NOW = 2.0e9


def judge(thread: ThreadRows) -> Diagnosis:
    return diagnose(thread, "", Policy(min_idle=0.0), NOW, NoFleet())


def with_journal(thread: ThreadRows, *, call: bytes, other: bytes) -> ThreadRows:
    """The thread with a copy of its list in another channel, one call's id exchanged."""
    head = thread.heads[""]
    stored = head.blobs["messages"]
    assert stored.blob is not None
    assert call in stored.blob
    assert len(call) == len(other)
    copy = replace(stored, channel="journal", blob=stored.blob.replace(call, other))
    document = dict(head.row.checkpoint)
    versions = document["channel_versions"]
    document["channel_versions"] = {**versions, "journal": versions["messages"]}
    rows = replace(
        head,
        row=replace(head.row, checkpoint=document),
        blobs={**head.blobs, "journal": copy},
    )
    return replace(thread, heads={"": rows})


def test_two_lists_with_the_same_calls_are_both_mended(thread_rows: LoadThread) -> None:
    diagnosis = judge(with_journal(thread_rows("agent_first_call"), call=b"a1", other=b"a1"))
    assert diagnosis.verdict is Verdict.REPAIRABLE
    assert [fault.channel for fault in diagnosis.faults] == ["messages", "journal"]
    assert diagnosis.patch is not None
    assert {"messages", "journal"} <= {blob.channel for blob in diagnosis.patch.blobs}


def test_two_lists_with_calls_of_their_own_are_left_to_a_person(thread_rows: LoadThread) -> None:
    diagnosis = judge(with_journal(thread_rows("agent_first_call"), call=b"a1", other=b"b1"))
    assert diagnosis.verdict is Verdict.MANUAL
    assert "'journal' and 'messages'" in diagnosis.reason
    assert diagnosis.patch is None


def test_a_result_that_a_finished_call_wrote_to_a_list_without_the_call_is_not_dropped(
    thread_rows: LoadThread,
) -> None:
    thread = with_journal(thread_rows("agent_partial"), call=b"a1", other=b"a1")
    head = thread.heads[""]
    # The journal has heard of no call yet, and the finished one tells it its result.
    first = msgspec.msgpack.decode(head.blobs["journal"].blob or b"", type=list[msgspec.Raw])[:1]
    quiet = replace(head.blobs["journal"], blob=msgspec.msgpack.encode(first))
    (written,) = (write for write in head.writes if write.channel == "messages")
    told = replace(written, idx=9, channel="journal")
    rows = replace(head, blobs={**head.blobs, "journal": quiet}, writes=(*head.writes, told))
    diagnosis = judge(replace(thread, heads={"": rows}))
    assert diagnosis.verdict is Verdict.MANUAL
    assert "'journal'" in diagnosis.reason
