"""The quick look at a head never passes over one that the whole reading would not."""

import os
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from repair_service.checkpoint.rows import HeadRows, ThreadRows
from repair_service.repair.quick import is_surely_clean, reads_clean
from tests.conftest import Server
from tests.repair.rows import damaged, load_threads, scanned

Threads = Callable[[], list[ThreadRows]]
"""Behind a call, so that a failure does not print them all."""

EXAMPLES = int(os.environ.get("REPAIR_FUZZ_EXAMPLES", "300"))


@pytest.fixture(scope="module")
def threads(server: Server) -> Threads:
    found = load_threads(server)
    return lambda: found


def passes(rows: HeadRows) -> bool:
    return is_surely_clean(scanned(rows))


def test_it_agrees_on_every_head_that_a_program_left(threads: Threads) -> None:
    heads = [head for thread in threads() for head in thread.heads.values()]
    passed = [head for head in heads if passes(head)]
    assert len(passed) >= 10
    assert all(reads_clean(head) for head in passed)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**64 - 1), damages=st.integers(1, 3))
def test_it_passes_over_no_damaged_head(threads: Threads, seed: int, damages: int) -> None:
    random = Random(seed)
    clean = [thread for thread in threads() if any(map(passes, thread.heads.values()))]
    thread = random.choice(clean)
    for _ in range(damages):
        thread = damaged(thread, random)
        for head in thread.heads.values():
            assert not passes(head) or reads_clean(head)
