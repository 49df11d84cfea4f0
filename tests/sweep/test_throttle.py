"""When a run waits, for how long, and what it says meanwhile; the clock is the test's."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from repair_service.ledger.records.base import Cursor, Earlier
from repair_service.repair.diagnosis import Diagnosis
from repair_service.repair.verdict import Policy, Verdict
from repair_service.store.gateway import Store
from repair_service.sweep.run import Sweep
from repair_service.sweep.selection import Selection
from repair_service.sweep.throttle import Limits, Throttle
from repair_service.sweep.totals import Totals
from tests.conftest import Corpus


@dataclass
class Clock:
    """Time that passes while somebody sleeps."""

    now: float = 1000.0
    events: list[tuple[float, Callable[[], None]]] = field(default_factory=list)

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds
        for moment, event in self.events:
            if moment <= self.now:
                event()

    def at(self, moment: float, event: Callable[[], None]) -> None:
        self.events.append((moment, event))


@dataclass
class Server:
    """A server whose load the test sets."""

    lag: float | None = 0.0
    active: int = 0
    wait: bool = False
    asked: int = 0

    def replica_lag(self) -> float | None:
        self.asked += 1
        return self.lag

    def active_sessions(self) -> int:
        self.asked += 1
        return self.active

    def says_wait(self, query: str) -> bool:
        self.asked += 1
        return self.wait


class Heard:
    """What a run says while it waits."""

    def __init__(self) -> None:
        self.causes: list[str | None] = []

    def __call__(self, totals: Totals) -> None:
        if not self.causes or self.causes[-1] != totals.waiting_for:
            self.causes.append(totals.waiting_for)


def throttle(limits: Limits, clock: Clock, *servers: Server) -> Throttle:
    return Throttle(limits, servers, clock=clock.time, sleep=clock.sleep)


def test_without_limits_nothing_is_asked_and_nothing_waits() -> None:
    clock, server, totals = Clock(), Server(active=1000, lag=1000, wait=True), Totals()
    waits = throttle(Limits(), clock, server)
    waits.looked_at(1_000_000)
    waits.wait(totals, Heard())
    assert (clock.now, server.asked, totals.throttled_seconds) == (1000.0, 0, 0.0)
    assert waits.most is None


@pytest.mark.parametrize(
    ("limits", "busy", "said"),
    [
        (
            Limits(max_active=100),
            Server(active=212),
            "212 active sessions, --max-active is 100",
        ),
        (Limits(max_lag=10), Server(lag=45.25), "a replica is 45.2 s behind, --max-lag is 10 s"),
        (Limits(throttle_query="SELECT true"), Server(wait=True), "--throttle-query asks for it"),
    ],
)
def test_it_waits_for_as_long_as_a_server_is_busy_and_names_the_cause(
    limits: Limits, busy: Server, said: str
) -> None:
    clock, heard, totals = Clock(), Heard(), Totals()

    def quiet() -> None:
        busy.active, busy.lag, busy.wait = 0, 0.0, False

    clock.at(1020, quiet)
    throttle(limits, clock, busy).wait(totals, heard)
    # It asks again each ten seconds at the latest.
    assert 1020 <= clock.now < 1031
    assert heard.causes == [said]
    assert totals.waiting_for is None
    assert totals.throttled_seconds == pytest.approx(clock.now - 1000)
    assert busy.asked < 10


def test_what_is_at_a_limit_is_within_it() -> None:
    clock, limits = Clock(), Limits(max_active=100, max_lag=10)
    throttle(limits, clock, Server(active=100, lag=10.0)).wait(Totals(), Heard())
    assert clock.now == 1000


def test_each_of_the_servers_is_within_the_limits_and_the_query_is_the_primarys() -> None:
    clock, heard = Clock(), Heard()
    primary, replica = Server(), Server(active=7, wait=True)
    clock.at(1003, lambda: setattr(replica, "active", 0))
    limits = Limits(max_active=5, throttle_query="SELECT true")
    throttle(limits, clock, primary, replica).wait(Totals(), heard)
    assert heard.causes == ["7 active sessions, --max-active is 5"]


def test_a_server_is_asked_once_a_second_at_most() -> None:
    clock, server = Clock(), Server()
    waits = throttle(Limits(max_active=5), clock, server)
    for _ in range(100):
        waits.wait(Totals(), Heard())
        clock.now += 0.05
    assert 4 <= server.asked <= 6


def test_a_file_pauses_a_run_until_it_is_gone(tmp_path: Path) -> None:
    clock, heard, file = Clock(), Heard(), tmp_path / "pause"
    file.touch()
    clock.at(1060, lambda: file.unlink(missing_ok=True))
    throttle(Limits(pause_file=file), clock).wait(Totals(), heard)
    assert 1060 <= clock.now < 1071
    assert heard.causes == [f"the file {file} is there (--pause-file)"]


def test_a_rate_is_kept_over_the_whole_run_and_is_no_matter_for_a_notice() -> None:
    clock, heard, totals = Clock(), Heard(), Totals()
    waits = throttle(Limits(rate=50), clock)
    assert waits.most == 50
    for _ in range(20):
        clock.now += 0.3  # the batch itself
        waits.looked_at(50)
        waits.wait(totals, heard)
    assert clock.now - 1000 == pytest.approx(20 * 1.3, abs=1.5)
    assert heard.causes == [None]
    assert totals.throttled_seconds == pytest.approx(20, abs=0.5)


def test_what_a_pause_left_of_a_rate_is_not_caught_up() -> None:
    clock = Clock()
    waits = throttle(Limits(rate=10), clock)
    clock.now += 3600
    waits.looked_at(100)
    waits.wait(Totals(), Heard())
    assert clock.now - 1000 == pytest.approx(3610, abs=0.2)


def test_several_processes_keep_a_rate_together() -> None:
    assert Limits(rate=90, max_active=5).shared_by(3) == Limits(rate=30, max_active=5)


def test_whoever_is_told_may_end_a_wait_at_once() -> None:
    class Stopped(BaseException):
        pass

    def stop(totals: Totals) -> None:
        if clock.now > 1002:
            raise Stopped

    clock, totals = Clock(), Totals()
    with pytest.raises(Stopped):
        throttle(Limits(max_active=0), clock, Server(active=1)).wait(totals, stop)
    assert clock.now < 1002.3
    assert totals.waiting_for is None
    assert totals.throttled_seconds == pytest.approx(clock.now - 1000)


def test_a_lag_that_no_server_shows_is_known() -> None:
    waits = throttle(Limits(max_lag=1), Clock(), Server(lag=None))
    waits.check()
    assert waits.blind


def test_a_sweep_asks_before_each_write(
    load_corpus: Callable[[str], Corpus], tmp_path: Path
) -> None:
    class Waits(BaseException):
        pass

    def told(totals: Totals) -> None:
        if totals.waiting_for:
            raise Waits

    database, file = load_corpus("python-1.2.24").database, tmp_path / "pause"
    with Store.connect(database.url, schema=database.schema) as store:
        sweep = Sweep(
            store,
            Policy(min_idle=0),
            Selection(),
            on_progress=told,
            throttle=Throttle(Limits(pause_file=file)),
        )
        outcomes = sweep.repair()
        while next(outcomes).verdict is not Verdict.REPAIRED:
            pass
        file.touch()
        with pytest.raises(Waits):
            list(outcomes)
    assert sweep.totals.verdicts[Verdict.REPAIRED] == 1


@dataclass
class InParts:
    """Runs that end in time, each going on where the one before was cut short."""

    store: Store
    pause_file: Path
    clock: Clock = field(default_factory=Clock)
    cursor: Cursor | None = None

    def sweep(self, run_time: float | None) -> Sweep:
        earlier = Earlier((uuid4(),), datetime.now(UTC), self.cursor) if self.cursor else None
        return Sweep(
            self.store,
            Policy(min_idle=0),
            Selection(earlier=earlier),
            throttle=throttle(Limits(rate=10, pause_file=self.pause_file), self.clock),
            run_time=run_time,
        )


@pytest.fixture
def in_parts(load_corpus: Callable[[str], Corpus], tmp_path: Path) -> Iterator[InParts]:
    database = load_corpus("python-1.2.24").database
    with Store.connect(database.url, schema=database.schema) as store:
        yield InParts(store, tmp_path / "pause")


def test_a_run_that_is_paused_for_all_of_its_time_ends_with_it(in_parts: InParts) -> None:
    in_parts.pause_file.touch()
    sweep = in_parts.sweep(60.0)
    assert list(sweep.audit()) == []
    assert (sweep.complete, sweep.stopped_by, sweep.cursor) == (False, "--run-time", None)
    assert 60.0 <= sweep.totals.throttled_seconds < 61.0


def test_a_run_that_is_cut_short_in_a_wait_is_gone_on_with_behind_what_it_saw(
    in_parts: InParts,
) -> None:
    whole = [place(each) for each in in_parts.sweep(None).audit()]
    found: list[tuple[str, str]] = []
    parts = 0
    complete = False
    while not complete and parts < 100:
        # The rate lets a batch of ten be looked at, and then the time is over.
        sweep = in_parts.sweep(0.5)
        found += [place(each) for each in sweep.audit()]
        complete, in_parts.cursor = sweep.complete, sweep.cursor
        parts += 1
    assert 3 < parts < 100
    assert found == whole


def test_a_sweep_that_is_cut_short_before_a_write_leaves_it_to_the_next(
    in_parts: InParts,
) -> None:
    sweep = in_parts.sweep(60.0)
    outcomes = sweep.repair()
    while next(outcomes).verdict is not Verdict.REPAIRED:
        pass
    in_parts.pause_file.touch()
    left = [each for each in outcomes if each.verdict is Verdict.REPAIRABLE]
    assert (len(left), sweep.complete, sweep.stopped_by) == (1, False, "--run-time")
    in_parts.pause_file.unlink()
    in_parts.cursor = sweep.cursor
    again = [each for each in in_parts.sweep(None).repair() if each.verdict is Verdict.REPAIRED]
    assert place(left[0]) in map(place, again)
    assert not [each for each in in_parts.sweep(None).audit() if each.verdict is Verdict.REPAIRABLE]


def place(diagnosis: Diagnosis) -> tuple[str, str]:
    return diagnosis.thread_id, diagnosis.checkpoint_ns
