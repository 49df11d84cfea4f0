"""The quick look at a head, by which a scan passes over most of a store."""

from repair_service.checkpoint.quick import quiet_values
from repair_service.checkpoint.rows import ScannedHead
from repair_service.transcript.quick import is_surely_faultless
from repair_service.transcript.read import looks_like_transcript


def is_surely_clean(head: ScannedHead) -> bool:
    """Whether nothing is going on at a head and its lists of messages have no fault.

    Says True only where `judge.reads_clean` does, at a tenth of the cost.
    """
    found = False
    for value in quiet_values(head):
        blob = value.blob or b""
        if is_surely_faultless(value.type, blob):
            found = True
        elif looks_like_transcript(value.type, blob):
            return False
    return found
