"""Whatever the rows are, a head of a changed graph gets its verdict, and a patch that is checked.

`make fuzz` asks many more times: `REPAIR_FUZZ_EXAMPLES` says how often.
"""

import os
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from repair_service.checkpoint.rows import ThreadRows
from repair_service.repair.fleet import NoFleet
from repair_service.repair.verdict import Migration, Policy, Verdict
from repair_service.sweep.judging import judge_of
from tests.conftest import Server
from tests.repair.rows import damaged, load_threads, scanned

EXAMPLES = int(os.environ.get("REPAIR_FUZZ_EXAMPLES", "300"))
NOW = 2.0e9
POLICIES = [
    Policy(min_idle=0.0, migration=migration, breakpoints=frozenset(breakpoints))
    for breakpoints in ((), ("model",))
    for migration in (
        Migration("nodes", {"tools": "hands", "agent": "model"}),
        Migration("nodes", {}, frozenset({"tools", "model"})),
        Migration("channels", {"messages": "conversation"}),
        Migration("types", {"langchain_core.messages.ai.AIMessage": "moved.AIMessage"}),
    )
]
POSSIBLE = {Verdict.HEALTHY, Verdict.REPAIRABLE, Verdict.MANUAL, Verdict.UNREADABLE}

Choose = Callable[[Random], ThreadRows]


@pytest.fixture(scope="module")
def choose(server: Server) -> Choose:
    """Takes a thread of the corpus."""
    threads = load_threads(server)
    return lambda random: random.choice(threads)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(0, 2**64 - 1),
    damages=st.integers(0, 4),
    policy=st.sampled_from(POLICIES),
)
def test_damaged_rows_get_a_verdict(
    choose: Choose, seed: int, damages: int, policy: Policy
) -> None:
    random, judge = Random(seed), judge_of(policy)
    thread = choose(random)
    for _ in range(damages):
        thread = damaged(thread, random)
    for namespace, rows in thread.heads.items():
        clean = judge.is_clean(scanned(rows))
        diagnosis = judge.diagnose(thread, namespace, NOW, NoFleet())
        assert diagnosis.verdict in POSSIBLE
        assert (diagnosis.verdict is Verdict.REPAIRABLE) == (diagnosis.patch is not None)
        if clean:
            assert diagnosis.verdict is Verdict.HEALTHY
        if diagnosis.patch is not None:
            # One that does not read back as it was meant is rolled back; it must say so, not raise.
            judge.wrong_with(diagnosis.patch, thread)
