"""A replica's hold on the lease: what runs is stopped, and gone, before the lease has ended."""

from dataclasses import dataclass

from repair_service.worker.hold import Hold

LEASE = 30.0


@dataclass
class Clock:
    time: float = 1000.0

    def __call__(self) -> float:
        return self.time


def taken(clock: Clock) -> Hold:
    hold = Hold(LEASE, clock)
    hold.take(hold.now())
    return hold


def test_nothing_may_run_without_a_lease() -> None:
    hold = Hold(LEASE, Clock())

    assert (hold.leads(), hold.must_be_still()) == (False, True)


def test_what_runs_is_stopped_and_then_killed_before_the_lease_ends() -> None:
    clock = Clock()
    hold = taken(clock)
    seen = []
    for second in range(31):
        clock.time = 1000.0 + second
        seen.append((hold.leads(), hold.must_be_still()))

    stopped = seen.index((False, False))
    killed = seen.index((False, True))
    assert (stopped, killed) == (20, 27)
    assert all(leads for leads, _ in seen[:stopped])


def test_a_renewed_lease_goes_on_from_before_it_was_asked_for() -> None:
    clock = Clock()
    hold = taken(clock)
    clock.time += 19
    asked_at = hold.now()
    clock.time += 6  # a slow answer
    hold.take(asked_at)

    clock.time = asked_at + 19.9
    assert hold.leads()
    clock.time = asked_at + 20.1
    assert not hold.leads()


def test_a_lease_that_another_replica_took_is_gone_at_once() -> None:
    hold = taken(Clock())

    hold.let_go()

    assert hold.must_be_still()
