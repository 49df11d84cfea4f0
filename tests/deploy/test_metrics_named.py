"""Every metric that a rule, the dashboard or the guide names is one that the worker has."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from repair_service.worker.metrics import exposition
from tests.deploy.conftest import DEPLOY
from tests.worker.http.summaries import SUMMARY
from tests.worker.http.workers import schedule_state, worker_state

FILES = [
    DEPLOY / "helm" / "repair-service" / "rules.yaml",
    DEPLOY / "grafana" / "repair-service.json",
    DEPLOY / "README.md",
]


def metrics() -> set[str]:
    """The names of all series of a worker that has something to say of everything."""
    state = worker_state(leads=True, schedules=(schedule_state(),))
    text, _ = exposition(state, {"orders": SUMMARY}, datetime.now(UTC))
    return set(re.findall(r"^(repair_service_\w+)", text.decode(), re.MULTILINE))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_metric_that_is_named_is_there(file: Path) -> None:
    named = set(re.findall(r"\brepair_service_[a-z_]+[a-z]\b", file.read_text()))
    assert named
    assert named <= metrics()
