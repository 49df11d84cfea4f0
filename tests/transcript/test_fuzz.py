"""Whatever the bytes are, nothing but `Unreadable` comes of them, and nothing is imported.

`make fuzz` asks many more times: `REPAIR_FUZZ_EXAMPLES` says how often.
"""

import os
import sys
import tracemalloc

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from repair_service.errors import Unreadable
from repair_service.transcript.mend import mend
from repair_service.transcript.pairing import find_faults, open_calls, tail_index
from repair_service.transcript.read import looks_like_transcript, read_messages, read_transcript
from repair_service.transcript.write import with_id, write_transcript
from tests.corpus.loader import VERSIONS
from tests.transcript.make import ai, as_dict, as_json, as_msgpack, human, result
from tests.transcript.stored import stored

EXAMPLES = int(os.environ.get("REPAIR_FUZZ_EXAMPLES", "400"))
MESSAGES = [human(), ai("a", invalid=["b"]), result("a")]
SEEDS = [
    ("msgpack", as_msgpack(MESSAGES)),
    ("msgpack", as_msgpack(_DeltaSnapshot(MESSAGES))),
    ("msgpack", as_msgpack({"messages": MESSAGES, "count": 1})),
    ("msgpack", as_msgpack([as_dict(message) for message in MESSAGES])),
    ("json", as_json(MESSAGES)),
]
REAL = sorted(
    {(type_, blob) for version in VERSIONS for _, type_, blob in stored(version) if len(blob) > 200}
)


def take_apart(type_: str, blob: bytes) -> None:
    """All that is ever done with a blob."""
    sniffed = looks_like_transcript(type_, blob)
    try:
        for message in read_messages(type_, blob):
            if message.kind != "overwrite":
                with_id("json" if type_ == "json" else "msgpack", message, "m")
    except Unreadable:
        pass
    try:
        transcript = read_transcript(type_, blob)
    except Unreadable:
        return
    if transcript is None:
        return
    assert sniffed or transcript.path or not transcript.messages
    findings = find_faults(transcript.messages)
    open_calls(transcript.messages)
    tail_index(transcript.messages)
    mend(
        transcript.messages,
        findings,
        salvage={},
        placeholder=lambda index, call: transcript.messages[index],
    )
    written = write_transcript(transcript)
    assert read_transcript(type_, written) == transcript


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(["msgpack", "json"]), st.binary(max_size=200))
@example("msgpack", b"\xc1")
@example("json", b"\xef\xbb\xbf[]")
def test_random_bytes(type_: str, blob: bytes) -> None:
    loaded = set(sys.modules)
    take_apart(type_, blob)
    assert set(sys.modules) == loaded


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    st.sampled_from(SEEDS) | st.sampled_from(REAL),
    st.lists(
        st.tuples(st.floats(0, 1), st.binary(max_size=3), st.integers(0, 4)), min_size=1, max_size=4
    ),
)
def test_mutated_real_blobs(seed: tuple[str, bytes], cuts: list[tuple[float, bytes, int]]) -> None:
    """Pieces of real blobs are replaced, inserted and cut out."""
    type_, blob = seed
    loaded = set(sys.modules)
    for where, piece, width in cuts:
        at = int(where * len(blob))
        blob = blob[:at] + piece + blob[at + width :]
        take_apart(type_, blob)
    assert set(sys.modules) == loaded


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(SEEDS), st.floats(0, 1))
def test_truncated_blobs_are_unreadable(seed: tuple[str, bytes], where: float) -> None:
    type_, blob = seed
    with pytest.raises(Unreadable):
        read_transcript(type_, blob[: int(where * (len(blob) - 1))])


@pytest.mark.parametrize("code", range(8))
def test_a_module_that_a_blob_names_is_not_imported(code: int) -> None:
    fields = {"type": "ai", "content": "", "additional_kwargs": {}}
    inside = msgspec.msgpack.encode(("this", "AIMessage", fields, "model_validate_json"))
    blob = msgspec.msgpack.encode([msgspec.msgpack.Ext(code, inside)])
    assert "this" not in sys.modules
    take_apart("msgpack", blob)
    assert "this" not in sys.modules


@pytest.mark.parametrize(
    "blob",
    [
        b"\xdd\xff\xff\xff\xff" + as_msgpack(MESSAGES)[1:],
        b"\xdf\xff\xff\xff\xff\xa1a\xc0",
        b"\x91\xdb\xff\xff\xff\xffcontent",
        b"\x91\xc9\xff\xff\xff\xff\x05content",
        b"\x91" * 1_000_000,
    ],
)
def test_a_declared_length_or_depth_costs_no_memory(blob: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(Unreadable):
            read_transcript("msgpack", blob)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
