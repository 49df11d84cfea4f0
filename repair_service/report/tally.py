"""Counts by name, of which there may be more than memory should hold."""

from collections import Counter
from dataclasses import dataclass, field

MOST_NAMES = 1000
"""Names come from the store: a model may have made up another tool in each of a million threads."""

LONGEST_NAME = 200
"""Characters of a name that are kept; names alike so far are counted as one."""


@dataclass(slots=True)
class Tally:
    """How often each name was seen; the first MOST_NAMES names are counted apart.

    Attributes:
        names: The counts by name.
        unnamed: What was counted for all other names together.
    """

    names: Counter[str] = field(default_factory=Counter)
    unnamed: int = 0

    def add(self, name: str) -> None:
        """Count one occurrence."""
        kept = name[:LONGEST_NAME]
        if kept in self.names or len(self.names) < MOST_NAMES:
            self.names[kept] += 1
        else:
            self.unnamed += 1

    def most_common(self, number: int) -> tuple[list[tuple[str, int]], int]:
        """The most frequent names with their counts, and the count of all others together."""
        ranked = sorted(self.names.items(), key=lambda entry: (-entry[1], entry[0]))
        # "1 other" says less than the name does.
        shown = ranked if len(ranked) <= number + 1 else ranked[:number]
        return shown, self.unnamed + sum(count for _, count in ranked[len(shown) :])
