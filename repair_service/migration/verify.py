"""The last question before a commit: is the step pending as it was, under the new names?"""

from dataclasses import replace

from repair_service.checkpoint.identifiers import NULL_TASK
from repair_service.checkpoint.rows import ThreadRows
from repair_service.migration.judge import diagnose_migration
from repair_service.migration.pending import found_pending
from repair_service.migration.rewriting import Rewriting
from repair_service.repair.diagnosis import Patch
from repair_service.repair.heads import ThreadHeads
from repair_service.repair.namespaces import is_live
from repair_service.repair.verdict import Policy, Verdict

NO_AGE = -1e12
"""Seconds of idleness that every head has: one that was just written too."""


def wrong_with_migration(
    patch: Patch, thread: ThreadRows, policy: Policy, rewriting: Rewriting
) -> str | None:
    """Judge the patched head as it was read back.

    Args:
        patch: The patch that was written.
        thread: The thread's rows, read in the same transaction after the write.
        policy: The policy of the migration; idle time is not asked.
        rewriting: What changes.

    Returns:
        What is wrong with it; None where nothing is left to be carried over, the same tasks are
        pending with the same writes, each found by its own id, and each sub-graph that went with
        it is live below it.
    """
    namespace = patch.row.checkpoint_ns
    rows = thread.heads.get(namespace)
    if rows is None or rows.row.checkpoint_id != patch.row.checkpoint_id:
        return "the patched checkpoint is not the head"
    settled = replace(policy, min_idle=NO_AGE, deployed_at=None)
    diagnosis = diagnose_migration(thread, namespace, settled, 0.0, rewriting)
    if diagnosis.verdict is not Verdict.HEALTHY:
        return f"the patched head is {diagnosis.verdict.value}: {diagnosis.reason}"
    heads = ThreadHeads(thread.heads)
    names = [namespace, *(carried.row.checkpoint_ns for carried in patch.below)]
    for name in names:
        if problem := heads.problem(name):
            return problem
        if not is_live(name, heads):
            return "a sub-graph that went with it is not below any of its tasks"
        head = heads[name]
        own = all(
            task.proven and task.writes[0].task_id in task.ids for task in head.tasks if task.writes
        )
        stray = any(write.task_id != NULL_TASK for write in head.stray_writes)
        if not own or stray:
            return "a task's writes are not found by its id"
    if found_pending(heads[name] for name in names) != patch.pending:
        return "other tasks or writes are pending behind the patch than were meant"
    return None
