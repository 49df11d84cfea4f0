"""The three tables that a thread is kept in, and where in their rows a value stands."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CopiedTable:
    """One table, its columns in the order in which COPY sends them.

    Attributes:
        name: Its name.
        type_at: The field of the serialization type of a value; None where it keeps none.
        value_at: The field of that value.
        documents_at: The fields of type jsonb.
    """

    name: str
    type_at: int | None = None
    value_at: int | None = None
    documents_at: tuple[int, ...] = ()


CHECKPOINTS = CopiedTable("checkpoints", documents_at=(5, 6))
BLOBS = CopiedTable("checkpoint_blobs", type_at=4, value_at=5)
WRITES = CopiedTable("checkpoint_writes", type_at=6, value_at=7)

COPIED_TABLES = (BLOBS, WRITES, CHECKPOINTS)
"""In the order in which they are written."""
