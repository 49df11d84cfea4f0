"""One head in a report: what programs read of it, and no content of any message."""

import msgspec

from repair_service.ledger.records.finding import Finding
from repair_service.repair.diagnosis import Diagnosis


class FaultItem(msgspec.Struct, frozen=True):
    """What is wrong at one place, and what the patch does about it."""

    kind: str
    message_index: int | None
    tool_call_id: str | None
    tool_name: str | None
    model: str | None
    mend: str


class Item(msgspec.Struct, frozen=True):
    """A head that is not healthy.

    Attributes:
        resume: `continue`, `park` or `keep`; None where there is no patch.
        idle_seconds: Age of the thread's newest checkpoint, to the second.
    """

    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str
    verdict: str
    reason: str
    channel: str | None
    faults: list[FaultItem]
    resume: str | None
    route: list[str]
    route_source: str | None
    new_checkpoint_id: str | None
    idle_seconds: int | None


def item_of_finding(finding: Finding) -> Item:
    """The report's item for a finding of the ledger: the one that the run itself reported."""
    item = item_of(finding.diagnosis())
    return msgspec.structs.replace(item, new_checkpoint_id=finding.new_checkpoint_id)


def item_of(diagnosis: Diagnosis) -> Item:
    """The report's item for a diagnosis.

    The new checkpoint's id is that of the patch, planned or written: the same id in both cases.
    """
    patch = diagnosis.patch
    return Item(
        thread_id=diagnosis.thread_id,
        checkpoint_ns=diagnosis.checkpoint_ns,
        checkpoint_id=diagnosis.checkpoint_id,
        verdict=diagnosis.verdict.value,
        reason=diagnosis.reason,
        channel=diagnosis.channel,
        faults=[
            FaultItem(
                kind=fault.kind.value,
                message_index=fault.message_index,
                tool_call_id=fault.tool_call_id,
                tool_name=fault.tool_name,
                model=fault.model,
                mend=fault.mend,
            )
            for fault in diagnosis.faults
        ],
        resume=diagnosis.resume,
        route=list(diagnosis.route),
        route_source=diagnosis.route_source,
        new_checkpoint_id=patch.row.checkpoint_id if patch else None,
        idle_seconds=None if diagnosis.idle_seconds is None else int(diagnosis.idle_seconds),
    )
