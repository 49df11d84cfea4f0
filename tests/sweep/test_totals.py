"""What a run counts as faults."""

from dataclasses import replace

import pytest

from repair_service.repair.diagnosis import Diagnosis
from repair_service.repair.verdict import Fault, FaultKind, Verdict
from repair_service.sweep.totals import Totals

FAULT = Fault(FaultKind.UNANSWERED_CALL, "messages", 1, "c", "slow", None, "none")
FOUND = Diagnosis("t", "", "1", Verdict.MANUAL, "", faults=(FAULT, FAULT))


@pytest.mark.parametrize("verdict", [Verdict.ACTIVE, Verdict.MANUAL, Verdict.REPAIRABLE])
def test_the_faults_of_damaged_heads_count(verdict: Verdict) -> None:
    totals = Totals()
    totals.count(replace(FOUND, verdict=verdict))
    assert totals.faults == {FaultKind.UNANSWERED_CALL: 2}


def test_a_call_that_somebody_is_to_answer_is_no_fault() -> None:
    totals = Totals()
    totals.count(replace(FOUND, verdict=Verdict.WAITING))
    assert totals.verdicts == {Verdict.WAITING: 1}
    assert not totals.faults
