"""The last question before a commit: is the patched head what it was meant to be?"""

import math
from dataclasses import replace

from repair_service.checkpoint.rows import ThreadRows
from repair_service.checkpoint.tasks import read_head
from repair_service.errors import Unreadable
from repair_service.repair.compose import pending_keys
from repair_service.repair.diagnosis import Patch
from repair_service.repair.fleet import NoFleet
from repair_service.repair.judge import diagnose
from repair_service.repair.verdict import Policy, Verdict


def wrong_with(patch: Patch, thread: ThreadRows, policy: Policy) -> str | None:
    """Diagnose the patched head as it was read back.

    Args:
        patch: The patch that was written.
        thread: The thread's rows, read in the same transaction after the write.
        policy: The policy of the repair; idle time and breakpoints are not asked.

    Returns:
        What is wrong with it, or None where it is healthy, but for the faults that the patch left
        alone on purpose, and nothing is pending that was not meant.
    """
    namespace = patch.row.checkpoint_ns
    rows = thread.heads.get(namespace)
    if rows is None or rows.row.checkpoint_id != patch.row.checkpoint_id:
        return "the patched checkpoint is not the head"
    settled = replace(
        policy,
        min_idle=-math.inf,
        deployed_at=None,
        breakpoints=frozenset(),
        infer_breakpoints=False,
    )
    diagnosis = diagnose(thread, namespace, settled, 0.0, NoFleet())
    left = diagnosis.verdict is Verdict.MANUAL and len(diagnosis.faults) == patch.left
    if diagnosis.verdict is not Verdict.HEALTHY and not left:
        return f"the patched head is {diagnosis.verdict.value}: {diagnosis.reason}"
    try:
        pending = pending_keys(read_head(rows))
    except Unreadable as problem:
        return str(problem)
    if pending != patch.pending:
        return "other tasks are pending behind the patch than were meant"
    return None
