"""The part of a store that one run looks at, where several share the work."""

from dataclasses import dataclass

from repair_service.store.scan import Shard as StoreShard


@dataclass(frozen=True, slots=True)
class Shard:
    """One part of the threads; every thread is in exactly one (store/scan.py, `shard_of`).

    Attributes:
        index: Which part, from 1.
        count: Of how many.
    """

    index: int
    count: int

    def part(self, index: int, count: int) -> "Shard":
        """A part of this part: from 1, of how many."""
        return Shard(self.index + self.count * (index - 1), self.count * count)

    def of_store(self) -> StoreShard:
        """The same as the store's scan takes it, counted from 0."""
        return self.index - 1, self.count

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"


WHOLE = Shard(1, 1)
"""All threads."""
