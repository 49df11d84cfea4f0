"""What the ledger says of a store as a whole: counts for a status page and for metrics."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Share:
    """How many of the faults are of one tool or model; None for those whose rows do not say."""

    name: str | None
    count: int


@dataclass(frozen=True, slots=True)
class LastWhole:
    """What the last run that saw the whole store found; of all of its shards together.

    Attributes:
        runs: The runs: one a shard, each followed by those that it went on from.
        at: When the oldest of them began.
        threads, heads: How many were looked at; by an incremental run, all that are not healthy and
            those that have changed.
        verdicts: Heads by verdict.
        kinds: Faults by kind.
        tools, models: Faults by tool and by model, the most frequent ones first. What is missing
            from the sum of `kinds` is of others.
        oldest_repairable: When the oldest head was written that has a patch which is not written.
    """

    runs: tuple[UUID, ...]
    at: datetime
    threads: int
    heads: int
    verdicts: Mapping[str, int]
    kinds: Mapping[str, int]
    tools: tuple[Share, ...]
    models: tuple[Share, ...]
    oldest_repairable: datetime | None


@dataclass(frozen=True, slots=True)
class RunsOfVerb:
    """The runs of one verb that have ended.

    Attributes:
        exit_codes: How many, by exit code.
        last_start, last_end: Of the one that ended last.
        last_throttled: Seconds that it waited for a quieter server.
        throttled: The same of all of them together.
        last_success: When the last one ended that did what it should (exit 0 or 2).
    """

    exit_codes: Mapping[int, int]
    last_start: datetime
    last_end: datetime
    last_throttled: float
    throttled: float
    last_success: datetime | None


@dataclass(frozen=True, slots=True)
class StoreSummary:
    """What the ledger says of one store.

    Attributes:
        whole: The last look at all of it; None where there was none.
        runs: Runs that have ended, by verb.
        repairs: Patches that were written, those taken back included.
        undone: Those of them that were taken back.
        open_intents: Patches of which nobody has said whether they are in the store.
        salvaged, placeholders: Results that the patches took up, and made up.
        quarantined: Threads that are not repaired again.
        untold: Events that the webhook did not take, and that are sent no more.
    """

    whole: LastWhole | None
    runs: Mapping[str, RunsOfVerb]
    repairs: int
    undone: int
    open_intents: int
    salvaged: int
    placeholders: int
    quarantined: int
    untold: int
