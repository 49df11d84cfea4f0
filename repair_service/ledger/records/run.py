"""A run: one call of a verb that looked at heads."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4


@dataclass(frozen=True, slots=True)
class StoreIdentity:
    """Which store the ledger speaks of.

    Attributes:
        address: Database, host, port and schema, without a password: for people.
        key: The same store has the same key in every run: for the ledger.
        shared: Whether the ledger's tables are in the store's own database, so that a patch and its
            row can be written in one transaction.
    """

    address: str
    key: str
    shared: bool


@dataclass(frozen=True, slots=True)
class NewRun:
    """What is known of a run when it starts.

    Attributes:
        verb: The verb.
        store: The store it looks at.
        selection, policy: What was asked and allowed: values that JSON can say, dataclasses,
            mappings, sets and times.
        whole_store: Whether the selection leaves no head out (an incremental sweep leaves none
            out either), or none of the shard.
        actor: Who runs it.
        version: The release.
        host: The machine.
        reason: Why, in the operator's words.
        shard_index, shard_count: Which part, from 1, of how many.
    """

    verb: str
    store: StoreIdentity
    selection: Any
    policy: Any
    whole_store: bool
    actor: str
    version: str
    host: str
    reason: str | None = None
    shard_index: int = 1
    shard_count: int = 1
    started_at: datetime | None = None
    id: UUID = field(default_factory=uuid4)


@dataclass(frozen=True, slots=True)
class Run:
    """A run as it stands in the ledger.

    Attributes:
        finished_at: None while it goes on, and for ever where the process died.
        complete: Whether every head of the selection was looked at.
        totals: What was counted; None where the run never said.
        resume_cursor: Where it would go on; None once it is complete.
    """

    id: UUID
    verb: str
    store: str
    store_key: str
    selection: Mapping[str, Any]
    policy: Mapping[str, Any]
    whole_store: bool
    actor: str
    reason: str | None
    version: str
    host: str
    shard_index: int
    shard_count: int
    started_at: datetime
    finished_at: datetime | None
    complete: bool
    totals: Mapping[str, Any] | None
    exit_code: int | None
    resume_cursor: Any
