"""Which heads a run looks at."""

from dataclasses import dataclass

from repair_service.sweep.shard import WHOLE, Shard


@dataclass(frozen=True, slots=True)
class Selection:
    """The heads to look at; everything by default.

    Attributes:
        threads: Only these threads.
        namespace: Only this namespace (the empty text is the root).
        since: Only heads newer than this, seconds since 1970.
        shard: Only the threads of this part.
    """

    threads: tuple[str, ...] = ()
    namespace: str | None = None
    since: float | None = None
    shard: Shard = WHOLE
