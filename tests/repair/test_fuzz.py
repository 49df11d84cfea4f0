"""Whatever the rows are, a head gets its verdict: no exception, no import, bounded memory.

`make fuzz` asks many more times: `REPAIR_FUZZ_EXAMPLES` says how often.
"""

import os
import sys
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from repair_service.checkpoint.rows import HeadRows, ThreadRows
from repair_service.checkpoint.tasks import read_head
from repair_service.checkpoint.triggers import SENDS
from repair_service.errors import Unreadable
from repair_service.repair.breakpoints import NodeRun, node_runs
from repair_service.repair.diagnosis import Diagnosis, Patch
from repair_service.repair.judge import diagnose
from repair_service.repair.quick import is_clean, reads_settled
from repair_service.repair.route import ToolStep, tool_steps
from repair_service.repair.verdict import Policy, Verdict
from repair_service.repair.verify import wrong_with
from tests.conftest import Server
from tests.repair.rows import damaged, load_threads, scanned, size_of

EXAMPLES = int(os.environ.get("REPAIR_FUZZ_EXAMPLES", "300"))
NOW = 2.0e9
BEFORE_A_WRITE = frozenset(
    {
        Verdict.HEALTHY,
        Verdict.REPAIRABLE,
        Verdict.WAITING,
        Verdict.ACTIVE,
        Verdict.MANUAL,
        Verdict.UNREADABLE,
    }
)
POLICIES = [
    Policy(min_idle=0.0),
    Policy(min_idle=0.0, infer_breakpoints=False),
    Policy(min_idle=0.0, resume="park", last=2),
    Policy(min_idle=0.0, route="model", client_tools=frozenset({"slow"})),
    Policy(
        min_idle=0.0,
        allow=frozenset({"at_rest", "duplicate_result", "orphan_result", "bound_prefix"}),
    ),
]


class OtherThread:
    """The fleet is one other thread, damaged as well."""

    def __init__(self, thread: ThreadRows) -> None:
        self.thread = thread

    def tool_steps(self) -> Sequence[ToolStep]:
        found: list[ToolStep] = []
        for namespace, rows in self.thread.heads.items():
            try:
                head = read_head(rows)
            except Unreadable:
                continue
            ancestors = self.thread.ancestors.get(namespace, ())
            found.extend(tool_steps(head, ancestors, "messages"))
        return found

    def node_runs(self) -> Sequence[NodeRun]:
        found: list[NodeRun] = []
        for namespace, rows in self.thread.heads.items():
            try:
                head = read_head(rows)
            except Unreadable:
                continue
            found.extend(node_runs(head, self.thread.ancestors.get(namespace, ())))
        return found


Choose = Callable[[Random], ThreadRows]


@pytest.fixture(scope="module")
def choose(server: Server) -> Choose:
    """Takes a thread of the corpus."""
    threads = load_threads(server)
    return lambda random: random.choice(threads)


def patched(thread: ThreadRows, patch: Patch) -> ThreadRows:
    """The thread as it would be read back behind the patch."""
    namespace = patch.row.checkpoint_ns
    head = thread.heads[namespace]
    versions = patch.row.checkpoint["channel_versions"]
    kept = {
        name: blob for name, blob in head.blobs.items() if blob.version == str(versions.get(name))
    }
    blobs = {**kept, **{blob.channel: blob for blob in patch.blobs}}
    sends = tuple(write for write in head.writes if write.channel == SENDS)
    new = HeadRows(patch.row, blobs, (), sends)
    ancestors = (head, *thread.ancestors.get(namespace, ()))
    return replace(
        thread,
        heads={**thread.heads, namespace: new},
        ancestors={**thread.ancestors, namespace: ancestors},
    )


def judged(thread: ThreadRows, policy: Policy, fleet: OtherThread) -> list[Diagnosis]:
    """The verdict on every head, of the quick look too; and of each patch as it reads back."""
    diagnoses = []
    for namespace, rows in thread.heads.items():
        clean = is_clean(scanned(rows))
        diagnosis = diagnose(thread, namespace, policy, NOW, fleet)
        assert diagnosis.verdict in BEFORE_A_WRITE
        assert (diagnosis.verdict is Verdict.REPAIRABLE) == (diagnosis.patch is not None)
        if clean and namespace == "":
            assert diagnosis.verdict in (Verdict.HEALTHY, Verdict.WAITING)
        if diagnosis.patch is not None:
            # A patch that does not read back healthy is rolled back; it must say so, not raise.
            after = patched(thread, diagnosis.patch)
            wrong_with(diagnosis.patch, after, policy)
            if namespace == "" and reads_settled(after.heads[""], after.ancestors[""][0].writes):
                found = diagnose(after, "", policy, NOW, fleet)
                assert found.verdict in (Verdict.HEALTHY, Verdict.WAITING)
        diagnoses.append(diagnosis)
    return diagnoses


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(0, 2**64 - 1),
    damages=st.integers(1, 4),
    policy=st.sampled_from(POLICIES),
)
def test_damaged_rows_get_a_verdict(
    choose: Choose, seed: int, damages: int, policy: Policy
) -> None:
    random = Random(seed)
    thread, other = choose(random), choose(random)
    for _ in range(damages):
        thread, other = damaged(thread, random), damaged(other, random)
    loaded = set(sys.modules)
    judged(thread, policy, OtherThread(other))
    assert set(sys.modules) == loaded


def lengthened(thread: ThreadRows, size: int) -> ThreadRows:
    """The thread with its first message repeated to so many bytes."""
    head = thread.heads[""]
    blob = head.blobs["messages"]
    assert blob.blob is not None
    messages = msgspec.msgpack.decode(blob.blob, type=list[msgspec.Raw])
    long = msgspec.msgpack.encode(messages[:1] * (size // len(messages[0])) + messages)
    blobs = {**head.blobs, "messages": replace(blob, blob=long)}
    return replace(thread, heads={**thread.heads, "": replace(head, blobs=blobs)})


@pytest.mark.parametrize("seed", range(3))
def test_damaged_rows_take_no_more_than_ten_times_their_size(choose: Choose, seed: int) -> None:
    random = Random(seed)
    thread = choose(random)
    while not _has_plain_list(thread):
        thread = choose(random)
    thread = lengthened(thread, 1_000_000)
    if seed:
        thread = damaged(thread, random)
    tracemalloc.start()
    try:
        judged(thread, POLICIES[0], OtherThread(thread))
        assert tracemalloc.get_traced_memory()[1] < 10 * size_of(thread)
    finally:
        tracemalloc.stop()


def _has_plain_list(thread: ThreadRows) -> bool:
    blob = thread.heads[""].blobs.get("messages") if "" in thread.heads else None
    return blob is not None and blob.type == "msgpack" and (blob.blob or b"")[:1] > b"\x90"
