"""How many threads are held in whole at once; and that a sweep in portions misses nothing."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repair_service.checkpoint.rows import BlobRow, CheckpointRow, HeadRows, ScannedHead, ThreadRows
from repair_service.repair.verdict import Policy, Verdict
from repair_service.store.gateway import Store
from repair_service.sweep import portions as bounds
from repair_service.sweep.portions import MOST_BYTES, MOST_THREADS, Portions, weight
from repair_service.sweep.run import Sweep
from repair_service.sweep.selection import Selection
from tests.conftest import Corpus

KIB, MIB = 1024, 1024 * 1024

VALUES = bytes(MOST_BYTES)
"""What the blobs below are cut from, so that a test of large ones is none of memory."""


def blob(size: int) -> dict[str, BlobRow]:
    return {"messages": BlobRow("messages", "1", "msgpack", VALUES[:size])}


def head(thread_id: str, size: int, namespace: str = "") -> ScannedHead:
    return ScannedHead(thread_id, namespace, "c", None, "{}", "{}", plain=True, blobs=blob(size))


def loaded(suspect: ScannedHead, ancestors: Sequence[int]) -> ThreadRows:
    """The thread of a head, and the values that its ancestors have."""
    row = CheckpointRow(suspect.thread_id, "", "c", None, {}, {})
    chain = tuple(HeadRows(row, blob(size)) for size in ancestors)
    return ThreadRows({"": HeadRows(row, suspect.blobs)}, {"": chain})


def threads_of(portion: Sequence[ScannedHead]) -> list[str]:
    return [thread_id for thread_id, _ in groupby(portion, lambda each: each.thread_id)]


SIZES = st.sampled_from([0, 10 * KIB, MIB, 5 * MIB, MOST_BYTES])
THREADS = st.lists(st.lists(SIZES, min_size=1, max_size=3), max_size=130)


@given(THREADS, st.lists(st.integers(0, 30), max_size=3))
def test_portions_are_all_suspects_in_order_in_whole_threads_and_within_the_bounds(
    threads: list[list[int]], learned: list[int]
) -> None:
    suspects = [
        head(f"t{number}", size, str(place))
        for number, sizes in enumerate(threads)
        for place, size in enumerate(sizes)
    ]
    cutting = Portions()
    for ancestors in learned:
        cutting.weighed([head("t", 0)], [loaded(head("t", 0), [0] * ancestors)])
    cut = list(cutting.cut(suspects))
    assert [each for portion in cut for each in portion] == suspects
    seen = [thread_id for portion in cut for thread_id in threads_of(portion)]
    assert len(seen) == len(set(seen)) == len(threads)
    for portion in cut:
        assert 0 < len(threads_of(portion)) <= MOST_THREADS
        assert len(threads_of(portion)) == 1 or sum(map(weight, portion)) <= MOST_BYTES


def test_many_small_threads_are_loaded_together() -> None:
    cut = list(Portions().cut([head(f"t{number}", KIB) for number in range(2 * MOST_THREADS)]))
    assert [len(portion) for portion in cut] == [MOST_THREADS, MOST_THREADS]


def test_a_few_huge_threads_are_held_one_at_a_time_and_the_small_ones_beside_them_together() -> (
    None
):
    sizes = [KIB] * 10 + [9 * MIB, 9 * MIB] + [KIB] * 10
    cut = list(Portions().cut([head(f"t{number}", size) for number, size in enumerate(sizes)]))
    assert [len(portion) for portion in cut] == [10, 1, 1, 10]


def test_a_thread_larger_than_the_bound_is_loaded_alone() -> None:
    huge = [head("huge", MOST_BYTES, namespace) for namespace in ("", "tools:1", "tools:2")]
    cut = list(Portions().cut([head("a", KIB), *huge, head("z", KIB)]))
    assert [threads_of(portion) for portion in cut] == [["a"], ["huge"], ["z"]]
    assert cut[1] == huge


def test_threads_with_long_histories_are_loaded_fewer_at_a_time_once_one_was_weighed() -> None:
    suspects = [head(f"t{number}", 100 * KIB) for number in range(MOST_THREADS)]
    cutting = Portions()
    assert [len(portion) for portion in cutting.cut(suspects)] == [MOST_THREADS]
    cutting.weighed(suspects[:1], [loaded(suspects[0], [100 * KIB] * 39)])
    cut = list(cutting.cut(suspects))
    assert len(cut) > 10
    for portion in cut:
        assert sum(map(weight, portion)) * 40 <= MOST_BYTES


def test_what_was_weighed_counts_for_the_portions_of_the_batch_at_hand() -> None:
    """The next portion is cut once the one before it was weighed, not all of them before."""
    suspects = [head(f"t{number}", 100 * KIB) for number in range(2 * MOST_THREADS)]
    cutting = Portions()
    sizes = []
    for portion in cutting.cut(suspects):
        sizes.append(len(portion))
        cutting.weighed(portion, [loaded(each, [100 * KIB] * 39) for each in portion])
    assert sizes[0] == MOST_THREADS
    assert max(sizes[1:]) <= 4


def test_long_histories_are_forgotten_slowly() -> None:
    suspects = [head(f"t{number}", 200 * KIB) for number in range(MOST_THREADS)]
    cutting = Portions()
    cutting.weighed(suspects[:1], [loaded(suspects[0], [200 * KIB] * 39)])
    firsts = []
    for _ in range(30):
        firsts.append(len(next(cutting.cut(suspects))))
        cutting.weighed(suspects[:1], [loaded(suspects[0], [])])
    assert firsts == sorted(firsts)
    assert firsts[:3] == [2, 2, 3]
    assert firsts[-1] == MOST_THREADS


def test_threads_that_are_gone_by_the_time_they_are_loaded_do_not_open_the_bounds() -> None:
    suspects = [head(f"t{number}", MIB) for number in range(MOST_THREADS)]
    cutting = Portions()
    for _ in range(30):
        cutting.weighed(suspects, [])
    for portion in cutting.cut(suspects):
        assert sum(map(weight, portion)) <= MOST_BYTES


def loadings(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The threads that are loaded at once from now on, but for the sample of the fleet's."""
    asked: list[list[str]] = []
    load = store.threads

    def threads(ids: Sequence[str], **more: Any) -> dict[str, ThreadRows]:
        if not more:
            asked.append(list(ids))
        return load(ids, **more)

    monkeypatch.setattr(store, "threads", threads)
    return asked


@pytest.fixture
def store(load_corpus: Callable[[str], Corpus]) -> Iterator[Store]:
    database = load_corpus("python-1.2.24").database
    with Store.connect(database.url, schema=database.schema) as store:
        yield store


def audited(store: Store) -> list[tuple[str, str, Verdict]]:
    sweep = Sweep(store, Policy(min_idle=0), Selection())
    return [(each.thread_id, each.checkpoint_ns, each.verdict) for each in sweep.audit()]


@pytest.mark.parametrize(("name", "bound"), [("MOST_BYTES", 64 * KIB), ("MOST_THREADS", 1)])
def test_a_sweep_in_small_portions_finds_the_same_in_the_same_order(
    store: Store, monkeypatch: pytest.MonkeyPatch, name: str, bound: int
) -> None:
    asked = loadings(store, monkeypatch)
    whole = audited(store)
    at_once = [len(ids) for ids in asked]
    asked.clear()
    monkeypatch.setattr(bounds, name, bound)
    assert audited(store) == whole
    loaded_ids = [thread_id for ids in asked for thread_id in ids]
    assert len(loaded_ids) == len(set(loaded_ids)) == sum(at_once)
    assert len(asked) > len(at_once)
