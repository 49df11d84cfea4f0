"""A scan fetches what may be a list of messages and no other large value; a repair fetches all."""

import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from repair_service.checkpoint.rows import ScannedHead
from repair_service.repair.verdict import Policy
from repair_service.store.gateway import Store
from repair_service.sweep.run import Sweep
from repair_service.sweep.selection import Selection
from repair_service.transcript.read import looks_like_transcript
from tests.conftest import Database
from tests.store.rows import checkpoint_id, put_blob, put_checkpoint
from tests.transcript.make import ai, as_dict, as_json, as_msgpack, constructor

LONG = "x" * 2_000
MESSAGES = [HumanMessage(LONG), AIMessage("hi")]
CALLER = ai("c")
VALUES: dict[str, tuple[str, bytes]] = {
    "messages": ("msgpack", as_msgpack(MESSAGES)),
    "many": ("msgpack", as_msgpack(MESSAGES * 20)),
    "most": ("msgpack", as_msgpack([HumanMessage("")] * 70_000)),
    "snapshot": ("msgpack", as_msgpack(_DeltaSnapshot(MESSAGES))),
    "dicts": ("msgpack", as_msgpack([as_dict(each) for each in MESSAGES])),
    "js": ("json", as_json(MESSAGES)),
    "js_snapshot": ("json", b'{"lc":2,"type":"delta_snapshot","value":' + as_json(MESSAGES) + b"}"),
    "spaced": ("json", b" \n[ \t" + as_json(MESSAGES)[1:]),
    "pairs": ("msgpack", as_msgpack([("user", LONG), CALLER])),
    "pairs_js": ("json", json.dumps([["user", LONG], constructor(CALLER)]).encode()),
    "text_first": ("msgpack", as_msgpack([LONG, CALLER])),
    "files": ("msgpack", as_msgpack({"a.txt": LONG})),
    "texts": ("msgpack", as_msgpack([LONG])),
    "texts_js": ("json", json.dumps([LONG, "a"]).encode()),
    "text_pairs": ("msgpack", as_msgpack([("user", LONG)])),
    "text": ("msgpack", as_msgpack(LONG)),
    "settings": ("json", json.dumps({"a": LONG}).encode()),
    "bytes": ("bytes", LONG.encode()),
    "small": ("msgpack", as_msgpack({"a": 1})),
    "branch:to:late": ("msgpack", as_msgpack([LONG, False])),
    "__root__": ("msgpack", as_msgpack({"messages": MESSAGES})),
    "secret": ("msgpack+aes", LONG.encode()),
}
LEFT_OUT = {"files", "texts", "texts_js", "text_pairs", "text", "settings", "bytes"}


def put(database: Database, values: dict[str, tuple[str, bytes]]) -> None:
    with database.connect() as connection:
        put_checkpoint(
            connection,
            "t",
            checkpoint_id(1),
            checkpoint={
                "v": 4,
                "channel_versions": dict.fromkeys(values, "1"),
                "channel_values": {},
            },
            metadata={"step": 1},
        )
        for channel, (type_, blob) in values.items():
            put_blob(connection, "t", channel, "1", blob, type=type_)


def scanned(database: Database) -> ScannedHead:
    with Store.connect(database.url, schema=database.schema) as store:
        ((head,),) = store.scan()
    return head


def test_what_may_be_a_list_of_messages_is_fetched(database: Database) -> None:
    put(database, VALUES)
    blobs = scanned(database).blobs
    assert {channel for channel, blob in blobs.items() if blob.left_out} == LEFT_OUT
    for channel, (type_, blob) in VALUES.items():
        if channel in LEFT_OUT:
            assert blobs[channel].blob is None
            assert not looks_like_transcript(type_, blob)
        elif channel != "secret":
            assert blobs[channel].blob == blob


def test_a_thread_and_a_head_in_whole_have_every_value(database: Database) -> None:
    put(database, VALUES)
    with Store.connect(database.url, schema=database.schema) as store:
        thread = store.threads(["t"])["t"].heads[""]
        (whole,) = store.in_whole([scanned(database)])
    for head in (thread, whole):
        for channel, (_, blob) in VALUES.items():
            if channel != "secret":
                assert head.blobs[channel].blob == blob
                assert not head.blobs[channel].left_out


@pytest.mark.parametrize("cut", [False, True])
def test_a_value_that_was_left_out_is_read_where_no_list_was_found(
    database: Database, cut: bool
) -> None:
    """A head without messages is healthy, unless a value may be a list that was cut short."""
    blob = as_msgpack({"a.txt": LONG})
    put(database, {"files": ("msgpack", blob[:-1] if cut else blob)})
    verdicts: list[Any] = []
    with Store.connect(database.url, schema=database.schema) as store:
        sweep = Sweep(store, Policy(min_idle=0), Selection())
        verdicts = [diagnosis.verdict.value for diagnosis in sweep.audit()]
    assert verdicts == (["unreadable"] if cut else [])
    assert sweep.totals.heads == 1
