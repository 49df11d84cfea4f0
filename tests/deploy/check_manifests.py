"""Every file in deploy/, held against its format and against this release; offline.

`make deploy-check` names this file to pytest. `make test` does not find it, since it needs tools
that are in the extra `deploy-check`.
"""

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from repair_service import __version__
from repair_service.cli.settings import load_settings
from repair_service.cli.times import parse_time
from repair_service.cli.worker_settings import load_worker
from tests.deploy.commands import accepted
from tests.deploy.conftest import DEPLOY
from tests.deploy.helm import Helm, HelmFailed, run

CHART = DEPLOY / "helm" / "repair-service"
VALUES = sorted((CHART / "ci").glob("*-values.yaml"))
PLAIN = [DEPLOY / "compose.yaml", DEPLOY / "kubernetes" / "after-deploy-argocd.yaml"]
SHARDED = DEPLOY / "kubernetes" / "sharded-sweep.yaml"
RULES = CHART / "rules.yaml"
PLAIN += [RULES, SHARDED, CHART / "Chart.yaml", CHART / "values.yaml", *VALUES]
VERSIONS = ("1.27", kubernetes_validate.latest_version())
"""The oldest Kubernetes that the chart allows, and the newest that is known."""

WORST_EXPOSURE = 1.5
"""Of 10, as systemd-analyze counts what a service could still do to its machine."""

Documents = list[dict[str, Any]]


@pytest.fixture(scope="session")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    return Helm(tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="session")
def charts(helm: Helm) -> dict[str, Documents]:
    """The chart, rendered with each of its example values."""
    return {values.name: helm.template(CHART, "--values", str(values)) for values in VALUES}


@pytest.fixture(scope="session")
def after_deploy(helm: Helm, tmp_path_factory: pytest.TempPathFactory) -> Documents:
    """The Job for an application's chart, rendered in a chart that has nothing else."""
    chart = tmp_path_factory.mktemp("application")
    (chart / "templates").mkdir()
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: orders\nversion: 1.0.0\n")
    shutil.copy(DEPLOY / "kubernetes" / "after-deploy-helm.yaml", chart / "templates")
    return helm.template(chart)


@pytest.fixture(scope="session")
def documents(charts: dict[str, Documents], after_deploy: Documents) -> Documents:
    """Every Kubernetes object that is shipped."""
    plain: Documents = []
    for file in sorted((DEPLOY / "kubernetes").glob("*.yaml")):
        if "{{" not in file.read_text():
            plain.extend(yaml.safe_load_all(file.read_text()))
    assert plain
    return [*(each for chart in charts.values() for each in chart), *after_deploy, *plain]


def pods(documents: Documents) -> Iterator[dict[str, Any]]:
    """The specification of each pod."""
    for document in documents:
        spec = document.get("spec", {})
        if document["kind"] == "CronJob":
            spec = spec["jobTemplate"]["spec"]
        if "template" in spec:
            yield spec["template"]["spec"]


def containers(documents: Documents) -> Iterator[dict[str, Any]]:
    for pod in pods(documents):
        yield from pod["containers"]


def tool(name: str, *arguments: str | Path) -> None:
    """Run a program of this environment; its complaints are the failure."""
    program = Path(sys.executable).with_name(name)
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_dockerfile_passes_hadolint() -> None:
    tool("hadolint", DEPLOY / "Dockerfile")


def test_the_yaml_is_in_form() -> None:
    tool("yamllint", "--strict", "--config-file", DEPLOY / ".yamllint", *PLAIN)


def test_compose_keeps_to_its_specification() -> None:
    tool("check-jsonschema", "--builtin-schema", "vendor.compose-spec", DEPLOY / "compose.yaml")


def test_the_schema_of_the_values_is_one_and_has_every_value() -> None:
    schema = CHART / "values.schema.json"
    tool("check-jsonschema", "--check-metaschema", schema)
    for values in VALUES:
        known = yaml.safe_load((CHART / "values.yaml").read_text())
        assert set(yaml.safe_load(values.read_text())) <= set(known)


@pytest.mark.parametrize("values", VALUES, ids=lambda values: values.stem)
def test_the_chart_passes_helm_lint(helm: Helm, values: Path) -> None:
    helm.lint(CHART, values)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("database.secret.name=", "/database/secret/name"),
        ("migrate.secret.name=", "/migrate/secret/name"),
        ("schedule.verb=repair", "/schedule/verb"),
        ("schedul.verb=sweep", "additional properties 'schedul' not allowed"),
        ("image.digest=latest", "/image/digest"),
        ("database.url=postgresql://me:secret@host/db", "additional properties 'url' not allowed"),
    ],
)
def test_values_that_cannot_be_meant_are_refused(helm: Helm, wrong: str, said: str) -> None:
    with pytest.raises(HelmFailed, match=re.escape(said)):
        helm.template(CHART, "--values", str(CHART / "ci" / "audit-values.yaml"), "--set", wrong)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_is_one_that_kubernetes_takes(documents: Documents, version: str) -> None:
    for document in documents:
        # What the Prometheus Operator takes is not of Kubernetes itself: promtool reads the rules.
        if not document["apiVersion"].startswith("monitoring.coreos.com/"):
            kubernetes_validate.validate(document, version, strict=True)


def test_every_pod_may_do_as_little_as_it_can(documents: Documents) -> None:
    for pod in pods(documents):
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not any("hostPath" in volume for volume in pod.get("volumes", []))
    for container in containers(documents):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["limits"]["memory"]
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}


def test_secrets_are_named_and_never_written(documents: Documents) -> None:
    for container in containers(documents):
        assert "postgresql://" not in str(container)
        secret = {each["name"] for each in container["env"] if "secretKeyRef" in str(each)}
        assert secret & {"DATABASE_URL", "REPAIR_LEDGER_URL"}


def test_this_release_takes_every_command(documents: Documents) -> None:
    for container in containers(documents):
        assert accepted(container["args"]), container["args"]
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    for name in ("doctor", "audit", "migrate", "sweep", "worker"):
        assert accepted(compose[name]["command"]), name
    assert not accepted(["sweep", "--no-such-flag"])


def test_this_release_takes_every_setting(
    documents: Documents, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    known = {f"REPAIR_{name.upper()}" for name in load_settings({}).options()}
    known |= {"REPAIR_LEDGER_URL", "REPAIR_CONFIG", "REPAIR_WORKER_TOKEN"}
    known |= {f"REPAIR_STORES__{store}__DATABASE_URL" for store in ("ORDERS", "BILLING")}
    named = {each["name"] for container in containers(documents) for each in container["env"]}
    named |= set(re.findall(r"REPAIR_[A-Z_]+", (DEPLOY / "compose.yaml").read_text()))
    assert {name for name in named if name.startswith("REPAIR_")} <= known
    files = [each["data"] for each in documents if each["kind"] == "ConfigMap"]
    assert files
    for number, data in enumerate(files):
        file = tmp_path / f"{number}.toml"
        file.write_text(data["repair-service.toml"])
        load_settings({"config": file})


def test_the_schedule_audits_until_it_is_told_to_sweep(charts: dict[str, Documents]) -> None:
    [audit] = [each for each in charts["audit-values.yaml"] if each["kind"] == "CronJob"]
    [sweep] = [each for each in charts["sweep-values.yaml"] if each["kind"] == "CronJob"]
    assert next(containers([audit]))["args"][0] == "audit"
    assert next(containers([sweep]))["args"][:2] == ["sweep", "--yes"]
    assert audit["spec"]["concurrencyPolicy"] == "Forbid"


def test_the_ledger_is_migrated_before_an_upgrade(charts: dict[str, Documents]) -> None:
    [migrate] = [each for each in charts["audit-values.yaml"] if each["kind"] == "Job"]
    assert migrate["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    assert next(containers([migrate]))["args"] == ["db", "upgrade"]


def test_nothing_reaches_the_pods_and_they_reach_the_database(
    charts: dict[str, Documents],
) -> None:
    rendered = charts["sweep-values.yaml"]
    policies = [each["spec"] for each in rendered if each["kind"] == "NetworkPolicy"]
    assert len(policies) == 2
    for policy in policies:
        assert policy["policyTypes"] == ["Ingress", "Egress"]
        assert "ingress" not in policy
        assert policy["egress"][1]["ports"] == [{"port": 6432, "protocol": "TCP"}]
        assert policy["egress"][1]["to"]
    for policy in policies:
        wanted = policy["podSelector"]["matchLabels"].items()
        templates = [
            (each["spec"].get("jobTemplate", each)["spec"]["template"])
            for each in rendered
            if each["kind"] in ("CronJob", "Job")
        ]
        assert sum(wanted <= each["metadata"]["labels"].items() for each in templates) == 1


def test_the_job_behind_a_deploy_knows_when_helm_began(after_deploy: Documents) -> None:
    [job] = after_deploy
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "post-upgrade"
    arguments = next(containers(after_deploy))["args"]
    assert "--settle" in arguments
    began = parse_time(arguments[arguments.index("--deployed-at") + 1])
    assert 0 <= time.time() - began < 300


def test_every_image_is_of_this_release(documents: Documents) -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    assert chart["appVersion"] == __version__
    images = [each["image"] for each in containers(documents) if "@sha256:" not in each["image"]]
    images += [compose[name]["image"] for name in ("audit", "migrate", "sweep", "worker", "demo")]
    assert {image.rpartition(":")[2] for image in images} == {__version__}


def test_systemd_takes_the_units(tmp_path: Path) -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("no systemd-analyze on this machine")
    for unit in (DEPLOY / "systemd").iterdir():
        text = unit.read_text().replace("/opt/repair-service/bin", str(Path(sys.executable).parent))
        (tmp_path / unit.name).write_text(text)
    units = [str(tmp_path / unit.name) for unit in (DEPLOY / "systemd").iterdir()]
    assert run(["systemd-analyze", "verify", *units]) == ""
    threshold = f"--threshold={WORST_EXPOSURE * 10:.0f}"
    for service in tmp_path.glob("*.service"):
        run(["systemd-analyze", "security", "--offline=true", threshold, str(service)])
        [command] = re.findall(r"^ExecStart=\S+ (.+)$", service.read_text(), re.MULTILINE)
        assert accepted(command.split())


def test_prometheus_takes_the_rules() -> None:
    if not shutil.which("promtool"):
        pytest.skip("no promtool on this machine (Debian has it in the package prometheus)")
    assert "SUCCESS" in run(["promtool", "check", "rules", str(RULES)])


def test_the_workers_pods_are_asked_how_they_are(charts: dict[str, Documents]) -> None:
    rendered = charts["worker-values.yaml"]
    [worker] = [each for each in rendered if each["kind"] == "Deployment"]
    assert worker["spec"]["replicas"] == 2
    [container] = containers([worker])
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert not [each for each in rendered if each["kind"] == "CronJob"]
    kinds = {each["kind"] for each in rendered}
    assert {"Service", "PodDisruptionBudget", "ServiceMonitor", "PrometheusRule"} <= kinds
    [policy] = [
        each["spec"]
        for each in rendered
        if each["kind"] == "NetworkPolicy" and each["metadata"]["name"].endswith("-worker")
    ]
    assert policy["ingress"][0]["ports"] == [{"port": "http", "protocol": "TCP"}]
    assert policy["ingress"][0]["from"]
    assert {"port": 443, "protocol": "TCP"} in policy["egress"][2]["ports"]


def test_the_worker_takes_its_settings(
    charts: dict[str, Documents], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rendered = charts["worker-values.yaml"]
    [data] = [each["data"] for each in rendered if each["kind"] == "ConfigMap"]
    (tmp_path / "worker.toml").write_text(data["repair-service.toml"])
    [worker] = [each for each in rendered if each["kind"] == "Deployment"]
    for variable in next(containers([worker]))["env"]:
        if variable["name"].endswith("DATABASE_URL") or variable["name"] == "REPAIR_LEDGER_URL":
            monkeypatch.setenv(variable["name"], f"postgresql://host/{variable['name'].lower()}")
    monkeypatch.setenv("REPAIR_WORKER_TOKEN", "0123456789abcdef")
    told = load_worker({"config": tmp_path / "worker.toml", "listen": ":8321"})
    assert {store.name for store in told.stores} == {"orders", "billing"}
    assert {schedule.name for schedule in told.schedules} == {"orders", "billing"}
    assert told.host == "0.0.0.0"  # noqa: S104  # as a pod is reached


def test_each_pod_of_a_sharded_sweep_takes_its_own_of_all_shards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    [job] = yaml.safe_load_all(SHARDED.read_text())
    assert job["spec"]["completionMode"] == "Indexed"
    arguments = next(containers([job]))["args"]
    given = arguments[arguments.index("--shard") + 1]
    pods_of_all = range(job["spec"]["completions"])
    shards = []
    for index in pods_of_all:
        # As Kubernetes sets it in a pod of an Indexed Job.
        monkeypatch.setenv("JOB_COMPLETION_INDEX", str(index))
        shards.append(load_settings({"shard": given}).part)
    assert [str(shard) for shard in shards] == [f"{index + 1}/8" for index in pods_of_all]
