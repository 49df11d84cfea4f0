"""Writing one patch: with its row in the ledger, and with what became of it."""

from collections.abc import Container
from dataclasses import replace

from repair_service.checkpoint.rows import ThreadRows
from repair_service.errors import Drifted, RepairFailed, Unreadable
from repair_service.repair.diagnosis import Diagnosis
from repair_service.repair.verdict import Policy, Verdict
from repair_service.store.gateway import Store
from repair_service.store.notice import Notice
from repair_service.sweep.judging import judge_of
from repair_service.sweep.record import Record

QUARANTINED = "quarantined"
"""The `allow` word for threads that were repaired too often."""


def write_patch(
    store: Store,
    diagnosis: Diagnosis,
    policy: Policy,
    record: Record,
    *,
    active_query: str | None = None,
) -> Diagnosis:
    """Write the patch of a repairable diagnosis.

    Args:
        store: The store.
        diagnosis: Any diagnosis; one that is not repairable is given back as it is.
        policy: The policy that it was made with.
        record: Takes the repair into the transaction.
        active_query: The operator's query for the threads that run now, asked before the commit.

    Returns:
        The diagnosis with the outcome as its verdict: repaired, drifted, failed.

    Raises:
        UsageError: The query failed.
        StoreError, LedgerError: One of the two cannot be used; the patch is not written.
    """
    patch = diagnosis.patch
    if diagnosis.verdict is not Verdict.REPAIRABLE or patch is None:
        return diagnosis

    judge = judge_of(policy)

    def check(thread: ThreadRows) -> str | None:
        return judge.wrong_with(patch, thread)

    try:
        with record.repairing(diagnosis) as also:
            store.append(
                patch.row,
                patch.blobs,
                head_id=patch.head_id,
                writes_digest=patch.writes_digest,
                also_heads=patch.above,
                writes=patch.writes,
                below=patch.below,
                check=check,
                depth=judge.depth(patch),
                also=also,
                active_query=active_query,
                notice=Notice(
                    "thread.repaired",
                    patch.row.thread_id,
                    patch.row.checkpoint_ns,
                    patch.row.checkpoint_id,
                    record.run_id,
                ),
            )
    except Drifted as drift:
        return replace(diagnosis, verdict=Verdict.DRIFTED, reason=str(drift))
    except Unreadable as problem:
        return replace(diagnosis, verdict=Verdict.UNREADABLE, reason=str(problem), patch=None)
    except RepairFailed as failure:
        return replace(diagnosis, verdict=Verdict.FAILED, reason=str(failure))
    return replace(diagnosis, verdict=Verdict.REPAIRED)


def is_held_back(
    diagnosis: Diagnosis, policy: Policy, record: Record, quarantined: Container[str]
) -> bool:
    """Whether a head is repairable, and not to be repaired again.

    Args:
        diagnosis: Any diagnosis.
        policy: The policy that it was made with.
        record: Knows how often its thread was repaired.
        quarantined: The threads in quarantine.
    """
    if diagnosis.verdict is not Verdict.REPAIRABLE or QUARANTINED in policy.allow:
        return False
    if policy.migration is not None:
        return False  # it mends nothing, so it says nothing of a tool that breaks again
    return diagnosis.thread_id in quarantined or record.too_often(diagnosis)


def held_back(diagnosis: Diagnosis) -> Diagnosis:
    """The diagnosis of a repairable head that is left to a person all the same."""
    reason = (
        "in quarantine: it was repaired as often as is allowed for the same calls and broke again; "
        "mend the tool, then --allow quarantined repairs it once more"
    )
    return without_patch(diagnosis, Verdict.MANUAL, reason)


def without_patch(diagnosis: Diagnosis, verdict: Verdict, reason: str) -> Diagnosis:
    """The diagnosis with another verdict, under which nothing is written."""
    return replace(
        diagnosis,
        verdict=verdict,
        reason=reason,
        faults=tuple(replace(fault, mend="none") for fault in diagnosis.faults),
        resume=None,
        route=(),
        route_source=None,
        patch=None,
    )
