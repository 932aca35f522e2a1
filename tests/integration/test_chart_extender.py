"""The extender as the chart starts it, with the rights of the chart's account and no others: it needs all of them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.certs import Authority, KeyPair
from tests.controlplane.controlplane import ControlPlane
from tests.kit.chart_release import Release, Right
from tests.kit.extender_process import Extender, kube_scheduler
from tests.kit.manifests import Obj, node, pod
from tests.kit.policies_live import API_VERSION
from tests.kit.raw_policies import make_policy

_WAIT = 60.0
_MOUNT = "/etc/moorage/tls"
#: Granted and not used here: real use is asked for only by a policy that goes by it.
UNUSED: set[Right] = {("metrics.k8s.io", "nodes", "list")}
#: Everybody may ask what he may do.
_REVIEWS: Right = ("authorization.k8s.io", "selfsubjectaccessreviews", "create")

PLUGIN = """\
import moorage

@moorage.plugin(refresh_every=600)
class Generation:
    def __init__(self):
        self.wanted = None

    async def refresh(self):
        self.wanted = "2"

    def filter(self, pod, nodes):
        return nodes.label("gen") == self.wanted
"""


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file: Path = tmp_path_factory.mktemp("plugins") / "rules.py"
    file.write_text(PLUGIN)
    return file


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory, plugin: Path) -> Iterator[Release]:
    values = {
        "scheduler.replicas": 0,
        "extender.enabled": True,
        "extender.full": True,
        "extender.writeStatus": True,
        "extender.tls": {"secretName": "tls", "clientCA": True},
        "extender.bind.enabled": True,
        "extender.extraArgs": [str(plugin)],
    }
    # Without WatchList the reflectors use all of their rights: they list before they watch.
    with ControlPlane(audit="Metadata", feature_gates={"WatchList": False}) as control_plane:
        yield Release(control_plane, tmp_path_factory.mktemp("helm"), values, component="extender")


def web(name: str, **spec: Any) -> Obj:
    made = pod(name, scheduler="default-scheduler", **spec)
    made["metadata"]["labels"] = {"app": "web"}
    return made


def effective(release: Release, name: str, namespace: str | None = None) -> tuple[str, str]:
    """Status and message of a policy's condition."""
    kind = "ClusterSchedulingPolicy" if namespace is None else "SchedulingPolicy"
    found = release.cluster.get(kind, name, namespace, api_version=API_VERSION)
    conditions = {each["type"]: each for each in found.get("status", {}).get("conditions", ())}
    condition = conditions.get("Effective", {})
    return condition.get("status", ""), condition.get("message", "")


def denied(release: Release) -> list[tuple[Right, str]]:
    return [
        (right, event["requestURI"])
        for right, event in release.requests()
        if event.get("responseStatus", {}).get("code") in (401, 403)
    ]


@pytest.mark.timeout(240)
def test_it_does_everything_with_just_its_rights(release: Release, tmp_path: Path) -> None:
    """All plugins, one of a user's, bindings over mutual TLS, and the status of policies."""
    cluster = release.cluster
    secret = tmp_path / "tls"
    secret.mkdir()
    authority = Authority(secret)
    server, client = authority.issue("extender", hosts=("127.0.0.1",)), authority.issue("kube-scheduler")
    server.certificate.rename(secret / "tls.crt")
    server.key.rename(secret / "tls.key")
    arguments = [argument.replace(_MOUNT, str(secret)) for argument in release.arguments]
    cluster.apply([node("a", gen="1"), node("b", gen="2"), node("c", gen="3")])
    limits = [{"topologyKey": "kubernetes.io/hostname", "maxPods": 2}]
    policy = make_policy("p", selector={"podSelector": {"matchLabels": {"app": "web"}}}, limits=limits)
    cluster.apply([policy, make_policy("near", "default")])
    with Extender(
        release.control_plane, *arguments, kubeconfig=release.kubeconfig, ca=authority.certificate
    ) as extender:
        assert "Plugin Generation" in extender.log
        with kube_scheduler(release.control_plane, extender.url, bind=True, **tls_files(authority, client)):
            for index in range(3):
                cluster.create(web(f"web-{index}"))

            def placed() -> list[str]:
                return [n for n in (cluster.node_of(f"web-{index}") for index in range(3)) if n]

            cluster.wait_for(lambda: len(placed()) == 2, _WAIT, "as many as the limit allows are bound")
            cluster.wait_for(
                lambda: any(cluster.events(f"web-{i}", reason="FailedScheduling") for i in range(3)), _WAIT
            )
            assert placed() == ["b", "b"]
        told = ("True", "generation 1 is in force")
        for where in (("p",), ("near", "default")):
            cluster.wait_for(lambda: effective(release, *where) == told, _WAIT, "the status is written")  # noqa: B023
    assert extender.process.returncode == 0, extender.log
    assert "Traceback" not in extender.log
    assert "WARNING" not in extender.log, extender.log
    assert denied(release) == []
    used = {right for right, _ in release.requests()}
    assert used - release.granted == {_REVIEWS}
    assert release.granted - used == UNUSED


@pytest.mark.timeout(240)
def test_policies_alone_need_little_and_say_what_is_best_effort(release: Release) -> None:
    """Stands after the test of everything: the same release with less."""
    cluster = release.cluster
    before = release.granted
    release.apply({"scheduler.replicas": 0, "extender.enabled": True, "extender.writeStatus": True})
    taken = sorted(before - release.granted)
    assert ("", "pods/binding", "create") in taken
    cluster.wait_for(lambda: not any(map(release.may, taken)), 30, "what was taken away is gone")
    cluster.apply([make_policy("q", selector={}, limits=[{"topologyKey": "gen", "maxPods": 1}])])
    with Extender(release.control_plane, *release.arguments, kubeconfig=release.kubeconfig):
        cluster.wait_for(
            lambda: (
                "best effort, as pods are bound without asking again: limits" in effective(release, "q")[1]
            ),
            _WAIT,
            "the status is written",
        )
    assert denied(release) == []


def tls_files(authority: Authority, client: KeyPair) -> dict[str, str]:
    return {
        "ca_file": str(authority.certificate),
        "cert_file": str(client.certificate),
        "key_file": str(client.key),
    }
