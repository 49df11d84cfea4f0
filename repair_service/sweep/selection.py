"""Which heads a run looks at."""

from dataclasses import dataclass, replace

from repair_service.ledger.records.base import Base, Earlier
from repair_service.sweep.shard import WHOLE, Shard


@dataclass(frozen=True, slots=True)
class Selection:
    """The heads to look at; everything by default.

    Attributes:
        threads: Only these threads.
        namespace: Only this namespace (the empty text is the root).
        since: Only heads newer than this, seconds since 1970.
        shard: Only the threads of this part.
        base: Of the heads that are asked for, only those of threads that changed since this run, or
            that it left unfinished; None for all.
        earlier: The runs that did the first part already; None where there are none.
    """

    threads: tuple[str, ...] = ()
    namespace: str | None = None
    since: float | None = None
    shard: Shard = WHOLE
    base: Base | None = None
    earlier: Earlier | None = None

    def of_job(self, index: int, count: int) -> "Selection":
        """The part of one process, from 1, of how many that share the work."""
        earlier = None if self.earlier is None else self.earlier.of_job(index)
        return replace(self, shard=self.shard.part(index, count), earlier=earlier)

    @property
    def whole(self) -> bool:
        """Whether no head of the store, or of the shard, is left out."""
        return (self.threads, self.namespace, self.since) == ((), None, None)
