"""What an application that listens is told of one of its threads: `NOTIFY repair_service`."""

import json
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

CHANNEL = "repair_service"

MOST_BYTES = 7_999
"""Postgres refuses a payload of 8000."""

NoticeType = Literal["thread.repaired", "thread.repair_undone"]


@dataclass(frozen=True, slots=True)
class Notice:
    """What became of a thread; sent in the transaction that does it, so heard only if it was done.

    Attributes:
        type: A patch was written, or taken back.
        thread_id, checkpoint_ns, checkpoint_id: The thread's head from then on.
        run_id: The run in the ledger; None where there is no ledger.
    """

    type: NoticeType
    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str
    run_id: UUID | None

    def payload(self, store: str, schema: str) -> str:
        """The notice as JSON, below Postgres' bound.

        Ids that are too long for it are null, and `look_in` names the table whose row of that
        `checkpoint_id` has them.

        Args:
            store: The store's address without a password.
            schema: The schema of the checkpoint tables.
        """
        told: dict[str, Any] = {
            "version": 1,
            "type": self.type,
            "store": store,
            "schema": schema,
            "thread_id": self.thread_id,
            "checkpoint_ns": self.checkpoint_ns,
            "checkpoint_id": self.checkpoint_id,
            "run_id": None if self.run_id is None else str(self.run_id),
        }
        text = _json(told)
        if len(text.encode()) <= MOST_BYTES:
            return text
        return _json({**told, "thread_id": None, "checkpoint_ns": None, "look_in": "checkpoints"})


def _json(told: dict[str, Any]) -> str:
    return json.dumps(told, ensure_ascii=False, separators=(",", ":"))
