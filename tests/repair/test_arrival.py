"""What starts the node behind the tools is written so that a deferred node can read it too."""

import pytest

from repair_service.checkpoint.tasks import read_head
from repair_service.repair.arrival import FINISHED_KEPT_APART, arriving
from repair_service.repair.verdict import Verdict
from tests.repair.conftest import LoadFrom
from tests.repair.test_at_rest import CAREFUL, judge


@pytest.mark.parametrize(
    ("version", "thread_id", "value"),
    [
        ("python-0.4.10", "custom_partial", ("msgpack", b"\x92\xc0\xc3")),
        ("js-1.7.3", "js_partial", ("json", b"[null,true]")),
    ],
)
def test_one_trigger_serves_plain_and_deferred_nodes(
    version: str, thread_id: str, value: tuple[str, bytes], rows_of: LoadFrom
) -> None:
    """`LastValueAfterFinish` cannot load the plain form, and a plain trigger takes any."""
    diagnosis = judge(rows_of(version, thread_id), CAREFUL)
    assert diagnosis.verdict is Verdict.REPAIRABLE
    assert diagnosis.patch is not None
    started = [
        (blob.type, blob.blob)
        for blob in diagnosis.patch.blobs
        if blob.channel.startswith("branch:to:") and blob.type != "empty"
    ]
    assert started == [value]


def test_several_triggers_of_unknown_kind_are_left_to_a_person(rows_of: LoadFrom) -> None:
    head = read_head(rows_of("python-0.4.10", "custom_partial").heads[""])
    plain = ("null", b"")
    assert arriving(head, (), {"branch:to:a": plain}) == {
        "branch:to:a": FINISHED_KEPT_APART["python-3"]
    }
    assert arriving(head, (), {"branch:to:a": plain, "branch:to:b": plain}) is None
    assert arriving(head, (), {"join:a+b:c": plain}) is None


def test_releases_without_deferred_nodes_get_what_a_task_writes(rows_of: LoadFrom) -> None:
    head = read_head(rows_of("python-0.2.76", "custom_partial").heads[""])
    assert head.layout in ("python-1", "python-2")
    channels = {
        "branch:tools:x:chat": ("msgpack", b"\xa5tools"),
        "tools": ("msgpack", b"\xa5tools"),
    }
    assert arriving(head, (), channels) == channels
