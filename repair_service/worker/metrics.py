"""The metrics: what the ledger says, alike on every replica, and what this replica is doing.

Cardinality is bounded: stores, schedules and replicas are those of the settings, verbs, verdicts,
kinds and exit codes are few, and tools and models are the most frequent ones and `other`.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from repair_service import __version__
from repair_service.ledger.records.summary import LastWhole, RunsOfVerb, Share, StoreSummary
from repair_service.repair.verdict import FaultKind, Verdict
from repair_service.report.table import printable
from repair_service.worker.state import WorkerState

PREFIX = "repair_service"
MOST_NAMES = 10
"""Tools, and models, with series of their own; the others are one series together."""

OTHER, UNNAMED = "other", "unknown"

Summaries = Mapping[str, StoreSummary]
"""What the ledger says of each store that it knows, by the store's name in the settings."""


def exposition(
    state: WorkerState, summaries: Summaries | None, now: datetime, accept: str = ""
) -> tuple[bytes, str]:
    """The metrics as text.

    Args:
        state: The replica.
        summaries: What the ledger says; None where it could not be asked. Then only what this
            replica knows is said, for an old number would pass for a new one.
        now: The time.
        accept: The request's Accept header: the text format, or OpenMetrics.

    Returns:
        The text, and its content type.
    """
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(_Collected([*_replica(state, summaries), *_ledger(summaries or {}, now)]))
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type


class _Collected(Collector):
    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> list[Metric]:
        return self._metrics


def _gauge(name: str, said: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"{PREFIX}_{name}", said, labels=labels)


def _counter(name: str, said: str, *labels: str) -> CounterMetricFamily:
    return CounterMetricFamily(f"{PREFIX}_{name}", said, labels=labels)


def _replica(state: WorkerState, summaries: Summaries | None) -> Iterator[Metric]:
    """What this replica knows by itself."""
    info = _gauge("info", "Always 1; the release is in its label.", "version")
    info.add_metric([__version__], 1)
    yield info
    ledger = _gauge("ledger_ready", "1 where the ledger can be used and was just read, else 0.")
    ledger.add_metric([], float(summaries is not None and state.ledger_problem is None))
    yield ledger
    stores = _gauge("store_ready", "1 where the store can be worked with, else 0.", "store")
    for store in state.stores:
        stores.add_metric([store.name], float(store.problem is None))
    yield stores
    leads = _gauge("leader", "1 on the replica that holds the lease, 0 on the others.")
    leads.add_metric([], float(state.leads))
    yield leads
    held = _gauge("lease_held", "1 while some replica holds the lease; else no schedule runs.")
    held.add_metric([], float(state.leader is not None))
    yield held
    paused = _gauge("paused", "1 while the schedules are paused, on all replicas.")
    paused.add_metric([], float(state.paused))
    yield paused
    running = _gauge("running", "What runs on this replica now.", "store", "verb")
    for store in state.stores:
        for verb in ("audit", "sweep", "repair", "undo"):
            count = sum((each.store, each.verb) == (store.name, verb) for each in state.running)
            running.add_metric([store.name, verb], count)
    yield running
    yield from _schedules(state)


def _schedules(state: WorkerState) -> Iterator[Metric]:
    labels = ("schedule", "store", "verb")
    upcoming = _gauge(
        "schedule_next_run_timestamp_seconds",
        "When a schedule runs next, as seconds since 1970; missing while it is paused, and on "
        "replicas that do not lead.",
        *labels,
    )
    misfires = _counter(
        "schedule_misfires",
        "Times of a schedule that passed while nobody could run it, since this replica began.",
        *labels,
    )
    for each in state.schedules:
        names = [each.name, each.store, each.verb]
        if each.next_run is not None:
            upcoming.add_metric(names, each.next_run.timestamp())
        misfires.add_metric(names, each.misfires)
    yield upcoming
    yield misfires


def _ledger(summaries: Summaries, now: datetime) -> Iterator[Metric]:
    """What the ledger says: the same on every replica."""
    whole = {name: each.whole for name, each in summaries.items() if each.whole is not None}
    yield from _heads(whole, now)
    yield from _faults(whole)
    yield from _written(summaries)
    yield from _runs(
        {(name, verb): runs for name, each in summaries.items() for verb, runs in each.runs.items()}
    )


def _heads(whole: Mapping[str, LastWhole], now: datetime) -> Iterator[Metric]:
    looked = _gauge(
        "last_whole_run_timestamp_seconds",
        "When the last audit or sweep of the whole store began. It found what heads, faults and "
        "oldest_repairable_seconds say.",
        "store",
    )
    heads = _gauge(
        "heads",
        "Heads (the newest checkpoints of a thread and namespace) by verdict, as that run left "
        "them. An incremental run looks at no healthy head that has not changed, nor counts it.",
        "store",
        "verdict",
    )
    oldest = _gauge(
        "oldest_repairable_seconds",
        "Age of the oldest head that has a patch which that run did not write; 0 where there is "
        "none.",
        "store",
    )
    for name, each in whole.items():
        looked.add_metric([name], each.at.timestamp())
        for verdict in Verdict:
            heads.add_metric([name, verdict.value], each.verdicts.get(verdict.value, 0))
        age = (now - each.oldest_repairable).total_seconds() if each.oldest_repairable else 0.0
        oldest.add_metric([name], max(age, 0.0))
    yield looked
    yield heads
    yield oldest


def _faults(whole: Mapping[str, LastWhole]) -> Iterator[Metric]:
    kinds = _gauge("faults", "Faults that the last whole run found, by kind.", "store", "kind")
    tools = _gauge(
        "tool_faults",
        f"The same by tool: the {MOST_NAMES} most frequent, unknown where the rows do not say, and "
        "other. A share that rises is a tool whose runtime is ill.",
        "store",
        "tool",
    )
    models = _gauge("model_faults", "The same by model.", "store", "model")
    for name, each in whole.items():
        for kind in FaultKind:
            kinds.add_metric([name, kind.value], each.kinds.get(kind.value, 0))
        for family, shares in ((tools, each.tools), (models, each.models)):
            for value, count in _most(shares, sum(each.kinds.values())).items():
                family.add_metric([name, value], count)
    yield kinds
    yield tools
    yield models


def _most(shares: Sequence[Share], total: int) -> dict[str, int]:
    """The most frequent names and, where there are more, the others as one."""
    shown: dict[str, int] = {}
    for share in shares[:MOST_NAMES]:
        said = UNNAMED if share.name is None else printable(share.name)
        shown[said] = shown.get(said, 0) + share.count
    others = total - sum(shown.values())
    if others > 0:
        shown[OTHER] = shown.get(OTHER, 0) + others
    return shown


def _written(summaries: Summaries) -> Iterator[Metric]:
    counters = {
        "repairs": ("Patches written, those taken back included.", "repairs"),
        "undone_repairs": ("Patches that were taken back.", "undone"),
        "salvaged_results": ("Real results that patches took up.", "salvaged"),
        "placeholders": (
            "Results that patches made up: how often tools are cut off before they answer.",
            "placeholders",
        ),
    }
    for metric, (said, field) in counters.items():
        counter = _counter(metric, said, "store")
        for name, each in summaries.items():
            counter.add_metric([name], getattr(each, field))
        yield counter
    gauges = {
        "open_intents": (
            "Patches of which a crash left open whether they are in the store; the next run looks.",
            "open_intents",
        ),
        "quarantined_threads": (
            "Threads that are not repaired again, for they broke at the same calls too often.",
            "quarantined",
        ),
        "webhook_dead": (
            "Events that the webhook did not take, and that are sent no more: outbox retry.",
            "untold",
        ),
    }
    for metric, (said, field) in gauges.items():
        gauge = _gauge(metric, said, "store")
        for name, each in summaries.items():
            gauge.add_metric([name], getattr(each, field))
        yield gauge


def _runs(runs: Mapping[tuple[str, str], RunsOfVerb]) -> Iterator[Metric]:
    labels = ("store", "verb")
    ended = _counter("runs", "Runs that have ended, by exit code.", *labels, "exit_code")
    duration = _gauge("last_run_duration_seconds", "How long the last run took.", *labels)
    last = _gauge("last_run_timestamp_seconds", "When the last run ended, however it did.", *labels)
    success = _gauge(
        "last_success_timestamp_seconds",
        "When the last run ended that did what it should: exit 0, or 2 (faults are left).",
        *labels,
    )
    throttled = _counter(
        "throttled_seconds", "Seconds that runs waited for a quieter server.", *labels
    )
    for names, each in runs.items():
        for code, count in sorted(each.exit_codes.items()):
            ended.add_metric([*names, str(code)], count)
        duration.add_metric([*names], (each.last_end - each.last_start).total_seconds())
        last.add_metric([*names], each.last_end.timestamp())
        if each.last_success is not None:
            success.add_metric([*names], each.last_success.timestamp())
        throttled.add_metric([*names], each.throttled)
    yield ended
    yield duration
    yield last
    yield success
    yield throttled
