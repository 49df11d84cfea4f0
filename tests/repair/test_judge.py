"""What is repaired, and the neighbours that must be left alone.

Each test takes a thread that a real, killed program left behind, and changes the one row that makes
the repair unsafe.
"""

from collections.abc import Callable
from dataclasses import replace

import msgspec

from repair_service.checkpoint.identifiers import timestamp
from repair_service.checkpoint.rows import CheckpointRow, HeadRows, ThreadRows, WriteRow
from repair_service.repair.diagnosis import Diagnosis
from repair_service.repair.fleet import NoFleet
from repair_service.repair.judge import diagnose
from repair_service.repair.quick import is_clean
from repair_service.repair.verdict import FaultKind, Policy, Verdict
from repair_service.transcript.read import read_transcript
from tests.repair.conftest import LoadThread
from tests.repair.rows import scanned

NOW = 2.0e9
WORD = msgspec.msgpack.encode("word")


def judge(thread: ThreadRows, policy: Policy | None = None) -> Diagnosis:
    return diagnose(thread, "", policy or Policy(min_idle=0.0), NOW, NoFleet())


def changed(
    thread: ThreadRows,
    *,
    row: Callable[[CheckpointRow], CheckpointRow] = lambda row: row,
    writes: Callable[[tuple[WriteRow, ...]], tuple[WriteRow, ...]] = lambda writes: writes,
) -> ThreadRows:
    head = thread.heads[""]
    new = HeadRows(row(head.row), head.blobs, writes(head.writes), head.parent_writes)
    return replace(thread, heads={**thread.heads, "": new})


def test_a_finished_siblings_result_is_taken_up(thread_rows: LoadThread) -> None:
    diagnosis = judge(thread_rows("agent_partial"))
    assert diagnosis.verdict is Verdict.REPAIRABLE
    assert [(fault.kind, fault.mend) for fault in diagnosis.faults] == [
        (FaultKind.UNCOMMITTED_RESULT, "salvage"),
        (FaultKind.UNANSWERED_CALL, "placeholder"),
    ]
    assert (diagnosis.resume, diagnosis.route, diagnosis.route_source) == (
        "continue",
        ("model",),
        "sibling",
    )


def test_a_list_that_starts_with_a_pair_is_a_transcript(thread_rows: LoadThread) -> None:
    thread = thread_rows("agent_first_call")
    head = thread.heads[""]
    stored = head.blobs["messages"]
    _, *rest = msgspec.msgpack.decode(stored.blob or b"", type=list[msgspec.Raw])
    listed = msgspec.msgpack.encode([("user", "hi"), *rest])
    blobs = {**head.blobs, "messages": replace(stored, blob=listed)}
    paired = replace(thread, heads={"": replace(head, blobs=blobs)})
    assert not is_clean(scanned(paired.heads[""]))
    diagnosis = judge(paired)
    assert diagnosis.verdict is Verdict.REPAIRABLE
    assert diagnosis.patch is not None
    (new,) = (blob for blob in diagnosis.patch.blobs if blob.channel == "messages")
    first, *_ = msgspec.msgpack.decode(new.blob or b"", type=list[msgspec.Raw])
    assert bytes(first) == b"\x92\xa4user\xa2hi"


def test_two_diagnoses_make_the_same_rows(thread_rows: LoadThread) -> None:
    thread = thread_rows("agent_partial")
    first, second = judge(thread).patch, judge(thread).patch
    assert first is not None
    assert first == second


def test_a_write_to_a_channel_of_unknown_merge_rule_is_left_to_a_person(
    thread_rows: LoadThread,
) -> None:
    def add(writes: tuple[WriteRow, ...]) -> tuple[WriteRow, ...]:
        return (*writes, replace(writes[-1], idx=7, channel="notes", type="msgpack", blob=WORD))

    diagnosis = judge(changed(thread_rows("agent_partial"), writes=add))
    assert diagnosis.verdict is Verdict.MANUAL
    assert "'notes'" in diagnosis.reason


def test_a_result_whose_task_cannot_be_proven_is_left_to_a_person(thread_rows: LoadThread) -> None:
    stranger = "11111111-2222-3333-4444-555555555555"

    def move(writes: tuple[WriteRow, ...]) -> tuple[WriteRow, ...]:
        return tuple(replace(write, task_id=stranger) for write in writes)

    diagnosis = judge(changed(thread_rows("agent_partial"), writes=move))
    assert diagnosis.verdict is Verdict.MANUAL
    assert "cannot be shown" in diagnosis.reason


def test_leftovers_of_another_task_are_never_taken_up(thread_rows: LoadThread) -> None:
    def misplace(writes: tuple[WriteRow, ...]) -> tuple[WriteRow, ...]:
        return tuple(
            replace(write, task_id="11111111-2222-3333-4444-555555555555", task_path="elsewhere")
            for write in writes
        )

    diagnosis = judge(changed(thread_rows("agent_partial"), writes=misplace))
    assert FaultKind.UNCOMMITTED_RESULT not in {fault.kind for fault in diagnosis.faults}
    # Nor does a placeholder say that there is no result where one may be the call's own.
    assert diagnosis.verdict is Verdict.MANUAL
    assert "cannot be shown" in diagnosis.reason


def test_leftovers_that_answer_none_of_the_calls_stand_in_no_ones_way(
    thread_rows: LoadThread,
) -> None:
    def add(writes: tuple[WriteRow, ...]) -> tuple[WriteRow, ...]:
        stranger = "11111111-2222-3333-4444-555555555555"
        copies = (replace(write, task_id=stranger, task_path="elsewhere") for write in writes)
        return (*writes, *copies)

    diagnosis = judge(changed(thread_rows("agent_partial"), writes=add))
    assert diagnosis.verdict is Verdict.REPAIRABLE
    assert [fault.mend for fault in diagnosis.faults] == ["salvage", "placeholder"]


def test_a_question_protects_the_whole_step(thread_rows: LoadThread) -> None:
    diagnosis = judge(thread_rows("agent_ask_crash"))
    assert diagnosis.verdict is Verdict.WAITING
    assert diagnosis.patch is None
    assert {fault.mend for fault in diagnosis.faults} == {"none"}


def test_an_id_that_is_no_uuid6_has_no_successor(thread_rows: LoadThread) -> None:
    def rename(row: CheckpointRow) -> CheckpointRow:
        name = "2f1ecfe3-cfd4-428b-8003-544fedb14bd2"
        return replace(row, checkpoint_id=name, checkpoint={**row.checkpoint, "id": name})

    diagnosis = judge(changed(thread_rows("agent_first_call"), row=rename))
    assert diagnosis.verdict is Verdict.MANUAL
    assert "UUIDv6" in diagnosis.reason


def test_results_dropped_by_an_overtaking_message_are_found(thread_rows: LoadThread) -> None:
    diagnosis = judge(thread_rows("agent_overtaken"))
    assert diagnosis.patch is not None
    assert diagnosis.patch.salvaged == 1
    assert diagnosis.resume == "keep"


def test_a_dropped_result_is_not_taken_up_without_what_its_task_wrote_beside_it(
    thread_rows: LoadThread,
) -> None:
    thread = thread_rows("agent_overtaken")

    def beside(rows: HeadRows) -> HeadRows:
        own = (replace(each, idx=7, channel="files", blob=WORD) for each in rows.writes)
        return replace(rows, writes=(*rows.writes, *own))

    ancestors = tuple(beside(rows) for rows in thread.ancestors[""])
    diagnosis = judge(replace(thread, ancestors={"": ancestors}))
    assert diagnosis.verdict is Verdict.MANUAL
    assert "'files'" in diagnosis.reason


def test_a_dropped_result_of_an_id_used_twice_is_not_taken_up(thread_rows: LoadThread) -> None:
    thread = thread_rows("agent_overtaken")
    head = thread.heads[""]
    blob = head.blobs["messages"]
    assert blob.blob is not None
    messages = msgspec.msgpack.decode(blob.blob, type=list[msgspec.Raw])
    twice = msgspec.msgpack.encode([messages[3], messages[4], *messages[3:]])
    blobs = {**head.blobs, "messages": replace(blob, blob=twice)}
    diagnosis = judge(replace(thread, heads={"": replace(head, blobs=blobs)}))
    assert FaultKind.UNCOMMITTED_RESULT not in {fault.kind for fault in diagnosis.faults}


def test_a_finished_task_is_not_dropped_by_a_mend_further_up(thread_rows: LoadThread) -> None:
    def finish(writes: tuple[WriteRow, ...]) -> tuple[WriteRow, ...]:
        answered = replace(writes[0], idx=0, channel="messages", type="msgpack", blob=b"\x90")
        return (answered,)

    diagnosis = judge(changed(thread_rows("agent_overtaken"), writes=finish))
    assert diagnosis.verdict is Verdict.MANUAL
    assert "would drop" in diagnosis.reason


def test_without_a_known_route_the_thread_is_parked(thread_rows: LoadThread) -> None:
    diagnosis = judge(thread_rows("agent_first_call"))
    assert diagnosis.verdict is Verdict.REPAIRABLE
    assert (diagnosis.resume, diagnosis.route) == ("park", ())
    assert diagnosis.patch is not None
    assert diagnosis.patch.pending == frozenset()


def test_a_declared_route_is_taken(thread_rows: LoadThread) -> None:
    policy = Policy(min_idle=0.0, route="model")
    diagnosis = judge(thread_rows("agent_first_call"), policy)
    assert (diagnosis.resume, diagnosis.route_source) == ("continue", "declared")
    assert diagnosis.patch is not None
    assert diagnosis.patch.pending == frozenset({"branch:to:model"})


def test_parking_is_obeyed_where_the_route_is_known(thread_rows: LoadThread) -> None:
    diagnosis = judge(thread_rows("agent_partial"), Policy(min_idle=0.0, resume="park"))
    assert diagnosis.resume == "park"
    assert diagnosis.patch is not None
    assert diagnosis.patch.pending == frozenset()


def test_a_clients_tool_waits_wherever_it_stands(thread_rows: LoadThread) -> None:
    policy = Policy(min_idle=0.0, client_tools=frozenset({"slow"}))
    assert judge(thread_rows("agent_partial"), policy).verdict is Verdict.WAITING


def test_a_call_at_rest_waits_unless_it_is_allowed(thread_rows: LoadThread) -> None:
    thread = thread_rows("client_tool")
    assert judge(thread).verdict is Verdict.WAITING
    allowed = judge(thread, Policy(min_idle=0.0, allow=frozenset({"at_rest"})))
    assert allowed.verdict is Verdict.REPAIRABLE


def test_the_call_above_decides_about_a_subgraph(thread_rows: LoadThread) -> None:
    thread = thread_rows("subnode_crash")
    (child,) = (namespace for namespace in thread.heads if namespace)
    policy = Policy(min_idle=0.0)
    assert diagnose(thread, child, policy, NOW, NoFleet()).verdict is Verdict.REPAIRABLE
    assert diagnose(thread, "", policy, NOW, NoFleet()).verdict is Verdict.HEALTHY


def test_a_subgraph_whose_parent_moved_on_is_dead(thread_rows: LoadThread) -> None:
    thread = thread_rows("subnode_crash")
    (child,) = (namespace for namespace in thread.heads if namespace)
    root = thread.heads[""]
    newer = "1f1ecfe5-a640-6799-8000-e3ef8f1e5622"
    moved = replace(root.row, checkpoint_id=newer, checkpoint={**root.row.checkpoint, "id": newer})
    heads = {**thread.heads, "": replace(root, row=moved)}
    diagnosis = diagnose(replace(thread, heads=heads), child, Policy(min_idle=0.0), NOW, NoFleet())
    assert diagnosis.verdict is Verdict.HEALTHY


def test_a_thread_with_one_young_namespace_is_active(thread_rows: LoadThread) -> None:
    thread = thread_rows("subnode_crash")
    (child,) = (namespace for namespace in thread.heads if namespace)
    diagnosis = diagnose(thread, child, Policy(min_idle=NOW), NOW, NoFleet())
    assert diagnosis.verdict is Verdict.ACTIVE
    assert diagnosis.reason.endswith("(--min-idle)"), "the reason names what decided"


def test_a_head_not_older_than_the_deploy_is_active(thread_rows: LoadThread) -> None:
    thread = thread_rows("agent_partial")
    diagnosis = judge(thread, Policy(deployed_at=1.0))
    assert diagnosis.verdict is Verdict.ACTIVE
    assert diagnosis.reason.endswith("(--deployed-at)")
    assert judge(thread, Policy(deployed_at=NOW)).verdict is Verdict.REPAIRABLE


def test_the_quick_look_agrees_with_the_diagnosis(thread_rows: LoadThread) -> None:
    assert is_clean(scanned(thread_rows("agent_healthy").heads[""]))
    assert not is_clean(scanned(thread_rows("agent_partial").heads[""]))
    assert not is_clean(scanned(thread_rows("hitl_wait").heads[""]))
    assert not is_clean(scanned(thread_rows("corrupt").heads[""]))


def test_untouched_messages_keep_their_very_bytes(thread_rows: LoadThread) -> None:
    thread = thread_rows("agent_partial")
    stored = thread.heads[""].blobs["messages"]
    patch = judge(thread).patch
    assert patch is not None
    assert stored.blob is not None
    (new,) = (blob for blob in patch.blobs if blob.channel == "messages")
    assert new.blob is not None
    before, after = read_transcript(stored.type, stored.blob), read_transcript(new.type, new.blob)
    assert before is not None
    assert after is not None
    kept = [message.raw for message in after.messages]
    assert kept[: len(before.messages)] == [message.raw for message in before.messages]


def with_old_fault(thread: ThreadRows) -> ThreadRows:
    """The same thread with the result of its first turn cut out of the list."""
    head = thread.heads[""]
    blob = head.blobs["messages"]
    assert blob.blob is not None
    messages = msgspec.msgpack.decode(blob.blob, type=list[msgspec.Raw])
    cut = msgspec.msgpack.encode([*messages[:2], *messages[3:]])
    # The cut result is not to be found again at the ancestor.
    ancestors = tuple(replace(each, writes=()) for each in thread.ancestors[""])
    rows = replace(head, blobs={**head.blobs, "messages": replace(blob, blob=cut)})
    return replace(thread, heads={"": rows}, ancestors={"": ancestors})


def test_faults_before_the_last_messages_are_reported_and_left(thread_rows: LoadThread) -> None:
    thread = with_old_fault(thread_rows("agent_partial"))
    whole = judge(thread)
    assert [fault.mend for fault in whole.faults] == ["placeholder", "salvage", "placeholder"]
    part = judge(thread, Policy(min_idle=0.0, last=1))
    assert part.verdict is Verdict.REPAIRABLE
    assert [fault.mend for fault in part.faults] == ["none", "salvage", "placeholder"]


def test_a_thread_with_faults_only_before_the_last_messages_is_left_to_a_person(
    thread_rows: LoadThread,
) -> None:
    diagnosis = judge(thread_rows("agent_overtaken"), Policy(min_idle=0.0, last=1))
    assert diagnosis.verdict is Verdict.MANUAL
    assert "--last" in diagnosis.reason


def test_a_callers_own_update_at_the_head_is_not_dropped(thread_rows: LoadThread) -> None:
    def update(writes: tuple[WriteRow, ...]) -> tuple[WriteRow, ...]:
        own = replace(
            writes[0],
            task_id="00000000-0000-0000-0000-000000000000",
            task_path="",
            channel="notes",
            blob=WORD,
        )
        return (own, *writes)

    diagnosis = judge(changed(thread_rows("agent_partial"), writes=update))
    assert diagnosis.verdict is Verdict.MANUAL
    assert "notes" in diagnosis.reason


def test_a_pending_error_handler_is_not_given_up(thread_rows: LoadThread) -> None:
    def hand_over(writes: tuple[WriteRow, ...]) -> tuple[WriteRow, ...]:
        return (*writes, replace(writes[-1], idx=5, channel="__error_source_node__", blob=WORD))

    diagnosis = judge(changed(thread_rows("agent_partial"), writes=hand_over))
    assert diagnosis.verdict is Verdict.MANUAL
    assert "error handler" in diagnosis.reason


def test_a_damaged_checkpoint_of_the_past_shows_nothing_and_stops_nothing(
    thread_rows: LoadThread,
) -> None:
    thread = thread_rows("agent_overtaken")
    nearest, *older = thread.ancestors[""]
    for document in ("text", None, []):
        broken = replace(nearest, row=replace(nearest.row, checkpoint=document))
        damaged = replace(thread, ancestors={"": (broken, *older)})
        assert judge(damaged).verdict is Verdict.REPAIRABLE


def test_values_in_the_checkpoint_that_are_no_mapping_are_unreadable(
    thread_rows: LoadThread,
) -> None:
    for values in (False, 0, "", []):

        def spoil(row: CheckpointRow, values: object = values) -> CheckpointRow:
            return replace(row, checkpoint={**row.checkpoint, "channel_values": values})

        assert judge(changed(thread_rows("agent_partial"), row=spoil)).verdict is Verdict.UNREADABLE


def at_node(thread: ThreadRows, node: str) -> ThreadRows:
    """The same thread with its calls pending at a node of another name."""
    head = thread.heads[""]

    def renamed(text: str) -> str:
        return text.replace("branch:to:tools", f"branch:to:{node}")

    document = dict(head.row.checkpoint)
    for key in ("channel_versions", "channel_values"):
        document[key] = {renamed(name): value for name, value in document[key].items()}
    return replace(thread, heads={"": replace(head, row=replace(head.row, checkpoint=document))})


def test_a_node_that_nothing_shows_to_run_tools_is_left_to_a_person(
    thread_rows: LoadThread,
) -> None:
    thread = at_node(thread_rows("custom_first_call"), "approval")
    diagnosis = judge(thread)
    assert diagnosis.verdict is Verdict.MANUAL
    assert "--tool-node approval" in diagnosis.reason
    declared = judge(thread, Policy(min_idle=0.0, tool_nodes=frozenset({"approval"})))
    assert declared.verdict is Verdict.REPAIRABLE


def test_a_young_thread_is_active_for_as_long_as_it_says(thread_rows: LoadThread) -> None:
    month = Policy(min_idle=30 * 86_400.0)
    thread = thread_rows("agent_partial")
    newest = timestamp(thread.heads[""].row.checkpoint_id)
    assert newest is not None
    young = diagnose(thread, "", month, newest + 60, NoFleet())
    assert young.verdict is Verdict.ACTIVE
    assert young.reason == "its newest checkpoint is younger than 30 d (--min-idle)"
    assert judge(thread, month).verdict is Verdict.REPAIRABLE
