"""Counts by name stay small, whatever the names are."""

from repair_service.report import tally
from repair_service.report.tally import Tally


def tally_of(*names: str) -> Tally:
    counts = Tally()
    for name in names:
        counts.add(name)
    return counts


def test_the_most_frequent_come_first_and_equals_by_name() -> None:
    counts = tally_of("b", "c", "a", "c")

    assert counts.most_common(9) == ([("c", 2), ("a", 1), ("b", 1)], 0)


def test_the_rest_is_counted_together() -> None:
    counts = tally_of("a", "a", "b", "c", "d", "d", "d")

    assert counts.most_common(2) == ([("d", 3), ("a", 2)], 2)


def test_one_more_name_is_named() -> None:
    assert tally_of("a", "b", "c").most_common(2) == ([("a", 1), ("b", 1), ("c", 1)], 0)


def test_memory_is_bounded_and_nothing_is_lost() -> None:
    names = [f"{number}" for number in range(tally.MOST_NAMES)]

    counts = tally_of(*names, "new", "newer", names[0])

    assert len(counts.names) == tally.MOST_NAMES
    assert counts.names[names[0]] == 2
    assert counts.unnamed == 2
    assert counts.most_common(1) == ([(names[0], 2)], tally.MOST_NAMES + 1)


def test_a_long_name_is_kept_in_part() -> None:
    assert len(next(iter(tally_of("x" * 10_000).names))) == tally.LONGEST_NAME
