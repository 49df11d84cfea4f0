"""The quick look at a head, by which a scan passes over most of a store."""

from collections.abc import Sequence

from repair_service.checkpoint.compose import is_patch
from repair_service.checkpoint.quick import quiet_values
from repair_service.checkpoint.rows import HeadRows, ScannedHead, WriteRow
from repair_service.checkpoint.tasks import read_head
from repair_service.checkpoint.transcripts import needs_history, read_transcripts
from repair_service.errors import Unreadable
from repair_service.repair.findings import examine
from repair_service.repair.late import may_be_outdated
from repair_service.transcript.message import Transcript
from repair_service.transcript.quick import is_surely_faultless
from repair_service.transcript.read import looks_like_transcript


def is_clean(head: ScannedHead) -> bool:
    """Whether a head is healthy by its own rows alone, whatever the rest of its thread says.

    The quick look of a scan: False says only that the whole thread has to be read.
    """
    return is_surely_clean(head) or (not head.writes and reads_clean(head.rows()))


def reads_clean(rows: HeadRows) -> bool:
    """What `is_clean` says after reading the head in whole."""
    return not is_patch(rows.row) and _faultless(rows) is not None


def reads_settled(rows: HeadRows, mended: Sequence[WriteRow]) -> bool:
    """What `is_clean` says of a patched head, into which a result that came late may belong.

    Args:
        rows: The head in whole.
        mended: The pending writes of the head that it mended, its parent.
    """
    found = _faultless(rows) if is_patch(rows.row) else None
    return found is not None and not any(may_be_outdated(rows.row, each, mended) for each in found)


def is_surely_clean(head: ScannedHead) -> bool:
    """Whether nothing is going on at a head and its lists of messages have no fault.

    Says True only where `reads_clean` does, at a tenth of the cost.
    """
    found = False
    for value in quiet_values(head):
        blob = value.blob or b""
        if is_surely_faultless(value.type, blob):
            found = True
        elif looks_like_transcript(value.type, blob):
            return False
    return found


def _faultless(rows: HeadRows) -> list[Transcript] | None:
    """The lists of a head at which nothing is under way; None where one may have a fault."""
    if rows.writes:
        return None  # a step is under way or was cut off: its whole thread is read in any case
    try:
        head = read_head(rows)
        if any(task.interrupted for task in head.tasks) or needs_history(head):
            return None
        transcripts = read_transcripts(head, (), False)
        if any(examine(head, name, found, ()) for name, found in transcripts.items()):
            return None
    except Unreadable:
        return None
    return list(transcripts.values())
