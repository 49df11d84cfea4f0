"""Which classes the values of a store name: what a deploy must still be able to load."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from repair_service.checkpoint.rows import BlobRow, HeadRows, ScannedHead, WriteRow
from repair_service.errors import Unreadable
from repair_service.migration.classes import Named, classes_in
from repair_service.store.gateway import Store
from repair_service.sweep.selection import Selection
from repair_service.sweep.shard import WHOLE
from repair_service.sweep.totals import Totals

MOST_CLASSES = 10_000
"""Classes that are counted one by one: an application that makes classes as it runs has no end."""

THREADS_AT_ONCE = 50
"""Threads whose history is held at once."""

NOT_READ = frozenset({"__start__", "__input__"})
"""Inputs, whose bytes are never asked for."""


@dataclass(slots=True)
class ClassCounts:
    """The classes in use.

    Attributes:
        objects: By class, how many objects.
        heads: By class, at how many heads.
        totals: The threads and heads that were looked at.
        unread: Values that could not be read.
        others: Objects of further classes, behind the first MOST_CLASSES.
    """

    objects: Counter[Named] = field(default_factory=Counter)
    heads: Counter[Named] = field(default_factory=Counter)
    totals: Totals = field(default_factory=Totals)
    unread: int = 0
    others: int = 0


def count_classes(
    store: Store, selection: Selection, moved: Callable[[Totals], None]
) -> ClassCounts:
    """Count the classes that the selected heads name, in values, pending writes and delta history.

    Memory is bounded by a batch of heads, THREADS_AT_ONCE threads and MOST_CLASSES names.

    Args:
        store: The store.
        selection: Which heads.
        moved: Called after each batch; what it raises ends the count.

    Raises:
        StoreError: The store cannot be used.
    """
    counts = ClassCounts()
    last: str | None = None
    for batch in store.scan(
        threads=selection.threads,
        namespace=selection.namespace,
        since=selection.since,
        shard=None if selection.shard == WHOLE else selection.shard.of_store(),
    ):
        for head in batch:
            counts.totals.heads += 1
            counts.totals.threads += head.thread_id != last
            last = head.thread_id
        for values in _values(store, batch):
            _count(counts, values)
        moved(counts.totals)
    return counts


def _values(store: Store, batch: Sequence[ScannedHead]) -> Iterator[Iterable[BlobRow | WriteRow]]:
    """The stored values of each head of a batch."""
    with_history = [head for head in batch if "counters_since_delta_snapshot" in head.metadata]
    further = {_place(head) for head in with_history}
    unsure = [
        head
        for head in batch
        if _place(head) not in further and any(blob.left_out for blob in head.blobs.values())
    ]
    further |= {_place(head) for head in unsure}
    for head in batch:
        if _place(head) not in further:
            yield [*head.blobs.values(), *head.writes, *head.parent_writes]
    for rows in store.in_whole(unsure) if unsure else ():
        yield _of_rows(rows)
    for some in _in_threads(with_history):
        threads = store.threads(list({head.thread_id for head in some}))
        for head in some:
            thread = threads.get(head.thread_id)
            if thread is not None and head.checkpoint_ns in thread.heads:
                rows = thread.heads[head.checkpoint_ns]
                yield _with_history(rows, thread.ancestors.get(head.checkpoint_ns, ()))


def _in_threads(heads: Sequence[ScannedHead]) -> Iterator[list[ScannedHead]]:
    names = list(dict.fromkeys(head.thread_id for head in heads))
    for start in range(0, len(names), THREADS_AT_ONCE):
        some = set(names[start : start + THREADS_AT_ONCE])
        yield [head for head in heads if head.thread_id in some]


def _of_rows(rows: HeadRows) -> list[BlobRow | WriteRow]:
    return [*rows.blobs.values(), *rows.writes, *rows.parent_writes]


def _with_history(rows: HeadRows, ancestors: Sequence[HeadRows]) -> list[BlobRow | WriteRow]:
    """The values of a head, and what its delta channels are rebuilt from."""
    values = _of_rows(rows)
    counted = rows.row.metadata.get("counters_since_delta_snapshot")
    wanted = set(counted) if isinstance(counted, dict) else set()
    wanted -= {channel for channel, blob in rows.blobs.items() if blob.type != "empty"}
    for ancestor in ancestors:
        values += [write for write in ancestor.writes if write.channel in wanted]
        found = {name for name, blob in ancestor.blobs.items() if blob.type != "empty"} & wanted
        values += [ancestor.blobs[channel] for channel in found]
        wanted -= found
        if not wanted:
            break
    return values


def _count(counts: ClassCounts, values: Iterable[BlobRow | WriteRow]) -> None:
    here: set[Named] = set()
    for value in values:
        if value.channel in NOT_READ or value.type in ("null", "empty"):
            continue
        if value.problem is not None or value.blob is None:
            counts.unread += 1
            continue
        try:
            named = list(classes_in(value.type, value.blob))
        except Unreadable:
            counts.unread += 1
            continue
        for each in named:
            if each in counts.objects or len(counts.objects) < MOST_CLASSES:
                counts.objects[each] += 1
                here.add(each)
            else:
                counts.others += 1
    counts.heads.update(here)


def _place(head: ScannedHead) -> tuple[str, str]:
    return head.thread_id, head.checkpoint_ns
