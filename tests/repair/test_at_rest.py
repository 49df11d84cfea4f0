"""Calls behind which the rows show no task that is to answer them."""

from dataclasses import replace

import pytest

from repair_service.checkpoint.rows import ThreadRows
from repair_service.checkpoint.triggers import SENDS
from repair_service.repair.diagnosis import Diagnosis
from repair_service.repair.fleet import NoFleet
from repair_service.repair.judge import diagnose
from repair_service.repair.quick import is_clean
from repair_service.repair.verdict import Policy, Verdict
from tests.repair.conftest import LoadFrom
from tests.repair.rows import scanned

NOW = 2.0e9
CAREFUL = Policy(min_idle=0.0)
BOLD = Policy(min_idle=0.0, allow=frozenset({"at_rest"}))


def judge(thread: ThreadRows, policy: Policy) -> Diagnosis:
    return diagnose(thread, "", policy, NOW, NoFleet())


def test_a_call_at_rest_is_the_clients_unless_the_operator_says_so(rows_of: LoadFrom) -> None:
    thread = rows_of("python-1.2.24", "client_tool")
    assert judge(thread, CAREFUL).verdict is Verdict.WAITING
    assert judge(thread, BOLD).verdict is Verdict.REPAIRABLE


@pytest.mark.parametrize("policy", [CAREFUL, BOLD])
def test_a_head_whose_scheduled_sends_are_lost_is_unreadable(
    policy: Policy, rows_of: LoadFrom
) -> None:
    thread = rows_of("python-1.2.24", "agent_partial")
    head = thread.heads[""]
    kept = {name: blob for name, blob in head.blobs.items() if name != SENDS}
    assert len(kept) < len(head.blobs)
    damaged = replace(thread, heads={"": replace(head, blobs=kept)})
    diagnosis = judge(damaged, policy)
    assert diagnosis.verdict is Verdict.UNREADABLE
    assert "Sends" in diagnosis.reason
    without_writes = replace(damaged.heads[""], writes=())
    assert not is_clean(scanned(damaged.heads[""]))
    assert not is_clean(scanned(without_writes))


def test_a_result_on_disk_stops_a_placeholder_though_its_send_is_lost(rows_of: LoadFrom) -> None:
    """Before format 4 a lost Send leaves no trace but what it led to."""
    thread = rows_of("python-0.4.10", "react_v2_partial")
    head = thread.heads[""]
    assert head.parent_writes
    damaged = replace(thread, heads={"": replace(head, parent_writes=())})
    assert judge(damaged, CAREFUL).verdict is Verdict.WAITING
    diagnosis = judge(damaged, BOLD)
    assert diagnosis.verdict is Verdict.MANUAL
    assert "cannot be shown to be its task's own" in diagnosis.reason


def test_a_node_that_may_be_pending_unseen_is_left_to_a_person(rows_of: LoadFrom) -> None:
    """Format 2 stores the same rows for a thread at rest and for one behind a static edge."""
    thread = rows_of("python-0.2.76", "client_tool")
    careful, bold = judge(thread, CAREFUL), judge(thread, BOLD)
    assert careful.verdict is Verdict.WAITING
    assert "a node that the rows do not name" in careful.reason
    assert bold.verdict is Verdict.MANUAL
    assert "'agent'" in bold.reason
