"""A patch for the tests of reports, which look at a few of its fields."""

from repair_service.checkpoint.rows import BlobRow, CheckpointRow
from repair_service.repair.diagnosis import Patch


def patch(
    row: CheckpointRow | None = None,
    blobs: tuple[BlobRow, ...] = (),
    *,
    salvaged: int = 0,
    placeholders: int = 0,
) -> Patch:
    """A patch with this row and these blobs."""
    return Patch(
        row=row or CheckpointRow("t", "", "new", "old", {}, {}),
        blobs=blobs,
        head_id="old",
        writes_digest="",
        pending=frozenset(),
        above={},
        left=0,
        salvaged=salvaged,
        placeholders=placeholders,
    )
