"""A real result that comes after the patch takes the placeholder's place, while it still can."""

from dataclasses import replace

from repair_service.checkpoint.rows import HeadRows, ThreadRows, WriteRow
from repair_service.repair.diagnosis import Diagnosis
from repair_service.repair.fleet import NoFleet
from repair_service.repair.judge import diagnose
from repair_service.repair.quick import is_clean, reads_settled
from repair_service.repair.verdict import FaultKind, Policy, Verdict
from repair_service.transcript.message import Transcript
from repair_service.transcript.read import read_transcript
from repair_service.transcript.write import compose_result, write_transcript
from tests.conftest import Server
from tests.repair.conftest import LoadThread
from tests.repair.rows import load_threads, scanned

NOW = 2.0e9


def judge(thread: ThreadRows, policy: Policy) -> Diagnosis:
    return diagnose(thread, "", policy, NOW, NoFleet())


def patched(thread: ThreadRows, policy: Policy) -> ThreadRows:
    """The thread with its patch behind it, as a store would give it."""
    patch = judge(thread, policy).patch
    assert patch is not None
    head = thread.heads[""]
    blobs = {**head.blobs, **{blob.channel: blob for blob in patch.blobs}}
    ancestors = (head, *thread.ancestors[""])
    return replace(thread, heads={"": HeadRows(patch.row, blobs)}, ancestors={"": ancestors})


def with_late_result(thread: ThreadRows) -> ThreadRows:
    """The old process ends: the slow call's task writes its result under the old head."""
    old, *older = thread.ancestors[""]
    fast = next(write for write in old.writes if write.channel == "messages")
    real = compose_result(
        "msgpack", call_id="a2", tool="slow", text="done", message_id="late", marks={}
    )
    blob = write_transcript(Transcript("msgpack", (replace(real, placeholder=False),)))
    # What compose_result makes is marked as ours; a tool's own result is not.
    blob = blob.replace(b"repair_service", b"somebody_else_")
    path = fast.task_path.replace("push, 0000000000", "push, 0000000001")
    late = WriteRow(fast.checkpoint_id, "slow-task", 0, "messages", "msgpack", blob, path)
    route = replace(late, idx=1, channel="branch:to:model", type="null", blob=b"")
    ancestors = (replace(old, writes=(*old.writes, late, route)), *older)
    return replace(thread, ancestors={"": ancestors})


def settled(thread: ThreadRows) -> bool:
    """What a scan says of the patched head by its parent's writes alone."""
    return reads_settled(thread.heads[""], thread.ancestors[""][0].writes)


def test_a_patched_head_is_healthy_and_is_passed_over_by_its_parents_writes(
    thread_rows: LoadThread,
) -> None:
    policy = Policy(min_idle=0.0)
    thread = patched(thread_rows("agent_partial"), policy)
    assert judge(thread, policy).verdict is Verdict.HEALTHY
    assert not is_clean(scanned(thread.heads[""]))
    assert settled(thread)


def test_a_patched_head_is_not_passed_over_once_a_result_came_late(
    thread_rows: LoadThread,
) -> None:
    assert not settled(with_late_result(patched(thread_rows("agent_partial"), Policy(min_idle=0))))


def test_a_patched_head_is_not_passed_over_where_a_write_cannot_be_read(
    thread_rows: LoadThread,
) -> None:
    thread = patched(thread_rows("agent_partial"), Policy(min_idle=0.0))
    sealed = replace(thread.ancestors[""][0].writes[0], blob=None, problem="no key")
    assert not reads_settled(thread.heads[""], [sealed])


def test_a_placeholder_of_an_earlier_head_leaves_a_patch_to_the_whole_look(
    thread_rows: LoadThread,
) -> None:
    thread = patched(thread_rows("agent_partial"), Policy(min_idle=0.0))
    head = thread.heads[""]
    later = replace(head.row, parent_checkpoint_id="1f000000-0000-6000-8000-000000000000")
    assert not reads_settled(replace(head, row=later), ())


def test_no_patch_of_any_release_is_passed_over_once_its_results_came(server: Server) -> None:
    policy = Policy(min_idle=0.0)
    passed = 0
    for thread in load_threads(server):
        if set(thread.heads) != {""} or judge(thread, policy).patch is None:
            continue
        mended = patched(thread, policy)
        if not settled(mended):
            continue
        passed += 1
        assert judge(mended, policy).verdict is Verdict.HEALTHY
        answered = with_all_results(mended)
        assert answered == mended or not settled(answered)
    assert passed > 20


def with_all_results(thread: ThreadRows) -> ThreadRows:
    """A task of the mended head writes a result for each call that got a placeholder."""
    writes = []
    for name, blob in thread.heads[""].blobs.items():
        found = read_transcript(blob.type, blob.blob) if blob.blob else None
        made = [message for message in found.messages if message.placeholder] if found else []
        for message in made:
            real = compose_result(
                found.encoding,
                call_id=message.answers or "",
                tool=message.name,
                text="done",
                message_id=f"late-{message.answers}",
                marks={},
            )
            bytes_ = write_transcript(replace(found, messages=(real,)))
            parent = thread.heads[""].row.parent_checkpoint_id
            writes.append(WriteRow(parent, "late", len(writes), name, blob.type, bytes_, "~x"))
    old, *older = thread.ancestors[""]
    answered = replace(old, writes=(*old.writes, *writes))
    return replace(thread, ancestors={"": (answered, *older)})


def test_a_late_result_takes_the_placeholders_place(thread_rows: LoadThread) -> None:
    policy = Policy(min_idle=0.0)
    thread = with_late_result(patched(thread_rows("agent_partial"), policy))
    diagnosis = judge(thread, policy)
    assert diagnosis.verdict is Verdict.REPAIRABLE
    assert [(fault.kind, fault.mend) for fault in diagnosis.faults] == [
        (FaultKind.UNCOMMITTED_RESULT, "salvage")
    ]
    assert "after the placeholder" in diagnosis.reason
    assert (diagnosis.resume, diagnosis.route) == ("keep", ("model",))
    assert diagnosis.patch is not None
    (new,) = (blob for blob in diagnosis.patch.blobs if blob.channel == "messages")
    assert new.blob is not None
    mended = read_transcript(new.type, new.blob)
    assert mended is not None
    results = [message for message in mended.messages if message.kind == "tool"]
    assert not any(message.placeholder for message in results)
    assert [message.answers for message in results] == ["a0", "a1", "a2"]


def test_a_late_result_is_taken_up_by_a_parked_thread_too(thread_rows: LoadThread) -> None:
    policy = Policy(min_idle=0.0, resume="park")
    thread = with_late_result(patched(thread_rows("agent_partial"), policy))
    diagnosis = judge(thread, policy)
    assert diagnosis.verdict is Verdict.REPAIRABLE
    assert diagnosis.patch is not None
    assert diagnosis.patch.pending == frozenset()


def test_a_late_result_is_not_taken_without_what_its_task_wrote_beside_it(
    thread_rows: LoadThread,
) -> None:
    policy = Policy(min_idle=0.0)
    thread = with_late_result(patched(thread_rows("agent_partial"), policy))
    old, *older = thread.ancestors[""]
    late = next(write for write in old.writes if write.task_id == "slow-task")
    old = replace(old, writes=(*old.writes, replace(late, idx=7, channel="files")))
    assert judge(replace(thread, ancestors={"": (old, *older)}), policy).verdict is Verdict.HEALTHY


def test_a_clients_call_waits_where_the_application_copied_our_mark(
    thread_rows: LoadThread,
) -> None:
    thread, theirs = thread_rows("client_tool"), thread_rows("agent_partial")
    patch = judge(theirs, Policy(min_idle=0.0)).patch
    assert patch is not None
    head = thread.heads[""]
    marked = replace(head, row=replace(head.row, metadata=patch.row.metadata))
    diagnosis = judge(replace(thread, heads={"": marked}), Policy(min_idle=0.0))
    assert diagnosis.verdict is Verdict.WAITING


def test_nothing_is_changed_once_the_application_went_on(thread_rows: LoadThread) -> None:
    policy = Policy(min_idle=0.0)
    thread = with_late_result(patched(thread_rows("agent_partial"), policy))
    head = thread.heads[""]
    theirs = {key: value for key, value in head.row.metadata.items() if key != "repair_service"}
    moved = replace(head, row=replace(head.row, metadata=theirs))
    assert judge(replace(thread, heads={"": moved}), policy).verdict is Verdict.HEALTHY
