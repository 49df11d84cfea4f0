"""Which heads a run looks at."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Selection:
    """The heads to look at; everything by default.

    Attributes:
        threads: Only these threads.
        namespace: Only this namespace (the empty text is the root).
        since: Only heads newer than this, seconds since 1970.
    """

    threads: tuple[str, ...] = ()
    namespace: str | None = None
    since: float | None = None
