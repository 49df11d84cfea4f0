"""Stored values are taken apart without importing what they name; bad bytes are unreadable."""

from contextlib import suppress
from itertools import count

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repair_service.checkpoint.rows import HeadRows, WriteRow
from repair_service.checkpoint.tasks import read_head
from repair_service.checkpoint.transcripts import needs_history, read_transcripts
from repair_service.checkpoint.values import Extension, constructed, decode, encode_set
from repair_service.errors import Unreadable
from tests.checkpoint.heads import HEAD, caller, head_rows, pulled, send_of, stored

TYPES = st.sampled_from(["msgpack", "json", "null", "empty", "bytes", "pickle", "other"])
BYTES = st.binary(max_size=24) | st.sampled_from(
    [
        b"\x81\x90\x01",  # a mapping whose key is a list
        b"\xc7\x0c\xff" + b"\xff" * 12,  # a time that no calendar holds
        b"\xd6\xff\xff\xff\xff\xff",
        b"\x91" * 5000,
        b"[" * 5000,
        b"\xc7\x05\x07",
        b"\xc7\x01\x01\x93",
    ]
)


@given(type_=TYPES, blob=BYTES)
def test_any_bytes_are_a_value_or_unreadable(type_: str, blob: bytes) -> None:
    with suppress(Unreadable):
        constructed(decode(type_, blob))


@given(
    channel=st.sampled_from(
        ["messages", "__root__", "branch:to:tools", "join:a+b:c", "__pregel_tasks", "__start__"]
    ),
    type_=TYPES,
    blob=BYTES,
    idx=st.sampled_from([(-3, "__interrupt__"), (-4, "__resume__"), (0, "messages")]),
)
def test_a_head_of_any_bytes_is_read_or_unreadable(
    channel: str, type_: str, blob: bytes, idx: tuple[int, str]
) -> None:
    rows = head_rows({channel: (type_, blob)}, inline={"branch:to:ask": None})
    places = count(1)
    task = pulled("ask")
    writes = tuple(
        WriteRow(HEAD, task, place - next(places), name, type_, blob) for place, name in [idx] * 2
    )
    asked = WriteRow(HEAD, task, -3, "__interrupt__", *stored([]))
    with suppress(Unreadable):
        head = read_head(
            HeadRows(rows.row, rows.blobs, (asked, *writes, caller("__resume__", 1)), writes)
        )
        read_transcripts(head, (), False)
        needs_history(head)


def test_a_value_without_bytes_is_unreadable() -> None:
    with pytest.raises(Unreadable, match="no bytes"):
        decode("msgpack", None)


def test_an_object_is_named_and_not_imported() -> None:
    forged = msgspec.msgpack.encode(("no.such.module", "Send", ["tools", []]))
    value = decode("msgpack", msgspec.msgpack.encode(msgspec.msgpack.Ext(1, forged)))
    assert value == Extension(1, forged)
    assert constructed(value) == ("Send", ["tools", []])
    assert constructed(decode(*stored(send_of("tools", [])))) == ("Send", ["tools", []])
    assert constructed({"a": 1}) is None


def test_a_set_is_stored_as_langgraphs_serializer_stores_it() -> None:
    assert encode_set(["a"]) == stored({"a"})[1]
