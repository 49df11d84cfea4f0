"""Rows in COPY's binary format, taken apart and put together again."""

from hypothesis import given
from hypothesis import strategies as st

from repair_service.transfer.digest import Digests, canonical
from repair_service.transfer.tables import CHECKPOINTS, WRITES
from repair_service.transfer.wire import END, HEADER, fields_of, jsonb, row_of, rows_of, thread_of

FIELDS = st.lists(st.none() | st.binary(max_size=40), min_size=1, max_size=9)


@given(FIELDS)
def test_a_row_is_put_together_as_it_was(fields: list[bytes | None]) -> None:
    assert fields_of(row_of(fields)) == fields


def test_the_beginning_and_the_end_of_a_copy_are_no_rows() -> None:
    first, second = row_of([b"a", None]), row_of([b"b", b""])
    assert list(rows_of([HEADER + first, second, END])) == [first, second]
    assert list(rows_of([HEADER, END])) == []
    assert thread_of(second) == "b"


@given(st.lists(st.tuples(st.sampled_from("ab"), st.binary(max_size=3)), max_size=8))
def test_a_digest_is_the_same_in_any_order_and_counts_each_row(
    rows: list[tuple[str, bytes]],
) -> None:
    forwards, backwards = Digests(), Digests()
    for thread, value in rows:
        forwards.add(WRITES, row_of([thread.encode(), value]))
    for thread, value in reversed(rows):
        backwards.add(WRITES, row_of([thread.encode(), value]))
    assert not forwards.differing(backwards, "ab")
    if rows:
        backwards.add(WRITES, row_of([rows[0][0].encode(), rows[0][1]]))
        assert forwards.differing(backwards, "ab") == {rows[0][0]}


def test_a_document_is_the_same_however_it_is_written() -> None:
    def row(document: bytes) -> bytes:
        return row_of([b"t", b"", b"1", None, None, jsonb(document), jsonb(b"{}")])

    same = [b'{"a": 1.50, "b": "x"}', b'{"b":"x","a":15e-1}']
    assert len({canonical(CHECKPOINTS, row(each)) for each in same}) == 1
    other = [b'{"a": "1.5", "b": "x"}', b'{"a": ["number", "1.5"], "b": "x"}']
    assert len({canonical(CHECKPOINTS, row(each)) for each in (*same, *other)}) == 2
