"""Results that an input dropped: taken from the step that the call belongs to, and no other."""

from collections.abc import Callable
from dataclasses import replace

import msgspec

from repair_service.checkpoint.rows import HeadRows, ThreadRows, WriteRow
from repair_service.repair.diagnosis import Diagnosis
from repair_service.repair.fleet import NoFleet
from repair_service.repair.judge import diagnose
from repair_service.repair.verdict import Policy, Verdict
from tests.repair.conftest import LoadThread

NOW = 2.0e9
ALL_BUT_ONE = ["salvage", "placeholder"]

Payload = dict[str, object]


def judge(thread: ThreadRows) -> Diagnosis:
    return diagnose(thread, "", Policy(min_idle=0.0), NOW, NoFleet())


def mends(diagnosis: Diagnosis) -> list[str]:
    return [fault.mend for fault in diagnosis.faults]


def with_ancestors(thread: ThreadRows, change: Callable[[HeadRows], HeadRows]) -> ThreadRows:
    ancestors = tuple(change(each) for each in thread.ancestors[""])
    return replace(thread, ancestors={"": ancestors})


def callers_written(thread: ThreadRows, change: Callable[[Payload], Payload]) -> ThreadRows:
    """The thread whose AI messages with calls were written in another form than the list has."""

    def rewrite(write: WriteRow) -> WriteRow:
        if write.channel != "messages" or b"AIMessage" not in write.blob:
            return write
        (element,) = msgspec.msgpack.decode(write.blob)
        module, name, payload, method = msgspec.msgpack.decode(element.data)
        stored = msgspec.msgpack.encode((module, name, change(payload), method))
        return replace(
            write, blob=msgspec.msgpack.encode([msgspec.msgpack.Ext(element.code, stored)])
        )

    return with_ancestors(
        thread, lambda rows: replace(rows, writes=tuple(map(rewrite, rows.writes)))
    )


def test_a_result_is_found_where_the_list_was_stored_in_another_form_since(
    thread_rows: LoadThread,
) -> None:
    thread = callers_written(
        thread_rows("agent_overtaken"), lambda payload: {**payload, "field_of_a_release": None}
    )
    assert mends(judge(thread)) == ALL_BUT_ONE


def test_a_result_of_a_call_with_other_arguments_is_not_taken(thread_rows: LoadThread) -> None:
    def edit(payload: Payload) -> Payload:
        calls = payload["tool_calls"]
        assert isinstance(calls, list)
        return {**payload, "tool_calls": [{**call, "args": {"to": "Bob"}} for call in calls]}

    diagnosis = judge(callers_written(thread_rows("agent_overtaken"), edit))
    assert diagnosis.verdict is Verdict.REPAIRABLE
    assert set(mends(diagnosis)) == {"placeholder"}


def test_a_result_of_a_step_that_ran_again_from_a_copy_is_not_taken(
    thread_rows: LoadThread,
) -> None:
    thread = thread_rows("agent_overtaken")
    overtaking, died, *older = thread.ancestors[""]
    assert died.row.metadata["source"] == "loop"
    copy = replace(
        died,
        row=replace(
            died.row,
            checkpoint_id=overtaking.row.checkpoint_id,
            metadata={**died.row.metadata, "source": "fork"},
        ),
        writes=(),
    )
    again = replace(thread, ancestors={"": (overtaking, copy, died, *older)})
    diagnosis = judge(again)
    assert diagnosis.verdict is Verdict.REPAIRABLE
    assert set(mends(diagnosis)) == {"placeholder"}
