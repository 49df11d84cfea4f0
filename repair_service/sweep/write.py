"""Writing one patch: with its row in the ledger, and with what became of it."""

from dataclasses import replace

from repair_service.checkpoint.rows import ThreadRows
from repair_service.errors import Drifted, RepairFailed
from repair_service.repair.diagnosis import Diagnosis
from repair_service.repair.verdict import Policy, Verdict
from repair_service.repair.verify import wrong_with
from repair_service.store.gateway import Store
from repair_service.sweep.record import Record

QUARANTINED = "quarantined"
"""The `allow` word for threads that were repaired too often."""


def write_patch(store: Store, diagnosis: Diagnosis, policy: Policy, record: Record) -> Diagnosis:
    """Write the patch of a repairable diagnosis.

    Args:
        store: The store.
        diagnosis: Any diagnosis; one that is not repairable is given back as it is.
        policy: The policy that it was made with.
        record: Takes the repair into the transaction.

    Returns:
        The diagnosis with the outcome as its verdict: repaired, drifted, failed; or manual where
        the thread was repaired too often for the same calls.

    Raises:
        StoreError, LedgerError: One of the two cannot be used; the patch is not written.
    """
    patch = diagnosis.patch
    if diagnosis.verdict is not Verdict.REPAIRABLE or patch is None:
        return diagnosis
    if QUARANTINED not in policy.allow and record.too_often(diagnosis):
        return held_back(diagnosis)

    def check(thread: ThreadRows) -> str | None:
        return wrong_with(patch, thread, policy)

    try:
        with record.repairing(diagnosis) as also:
            store.append(
                patch.row,
                patch.blobs,
                head_id=patch.head_id,
                writes_digest=patch.writes_digest,
                also_heads=patch.above,
                check=check,
                also=also,
            )
    except Drifted as drift:
        return replace(diagnosis, verdict=Verdict.DRIFTED, reason=str(drift))
    except RepairFailed as failure:
        return replace(diagnosis, verdict=Verdict.FAILED, reason=str(failure))
    return replace(diagnosis, verdict=Verdict.REPAIRED)


def held_back(diagnosis: Diagnosis) -> Diagnosis:
    """The diagnosis of a thread in quarantine: a repairable one is left to a person."""
    if diagnosis.verdict is not Verdict.REPAIRABLE:
        return diagnosis
    reason = (
        "in quarantine: it was repaired as often as is allowed for the same calls and broke again; "
        "mend the tool, then --allow quarantined repairs it once more"
    )
    return replace(diagnosis, verdict=Verdict.MANUAL, reason=reason, patch=None)
