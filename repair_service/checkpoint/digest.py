"""A short name for the pending writes of a head, to see whether they changed."""

import hashlib
from collections.abc import Iterable

from repair_service.checkpoint.rows import WriteRow


def writes_digest(writes: Iterable[WriteRow]) -> str:
    """Digest of pending writes: the same rows in the same order, the same text.

    Every part is preceded by its length, so that no two lists of rows read alike. The bytes are
    those of the row as it was read: decrypted where the key was given.

    Args:
        writes: The writes of one checkpoint, ordered by task_path, task_id, idx.

    Returns:
        64 hex digits of SHA-256.
    """
    digest = hashlib.sha256()
    for write in writes:
        parts = (write.task_id, str(write.idx), write.channel, write.type, write.task_path)
        for part in (*(text.encode("utf-8", "surrogatepass") for text in parts), write.blob):
            digest.update(len(part).to_bytes(8, "big"))
            digest.update(part)
    return digest.hexdigest()
