"""The extender binds: exactly, only what it may, and only for whom it may; and what happens while it is away."""

import collections
import json
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage.adapters.kube.permissions import needed_by_extender
from tests.controlplane.certs import Authority
from tests.controlplane.client import Client
from tests.controlplane.controlplane import ControlPlane
from tests.kit.extender_process import Extender, kube_scheduler
from tests.kit.manifests import Obj, node, pod
from tests.kit.policies_live import API_VERSION, install_crds
from tests.kit.raw_policies import make_policy

_WAIT = 90.0
SSD: Obj = {"selector": {"matchLabels": {"disk": "ssd"}}}
ANNOTATION = "moorage.dev/policies"


@pytest.fixture(scope="module")
def _definitions(_session_control_plane: ControlPlane) -> ControlPlane:
    _session_control_plane.reset()
    install_crds(_session_control_plane.admin)
    return _session_control_plane


@pytest.fixture
def crowd(_definitions: ControlPlane) -> Iterator[ControlPlane]:
    """A cluster with the definitions of policies, and nothing else."""
    yield _definitions
    cluster = _definitions.admin
    for kind, version in (("ClusterSchedulingPolicy", API_VERSION), ("Pod", "v1"), ("Node", "v1")):
        for obj in cluster.list(kind, api_version=version):
            meta = obj["metadata"]
            cluster.delete(kind, meta["name"], meta.get("namespace"), api_version=version)


def selecting(app: str, **spec: Any) -> Obj:
    """A policy for the pods of an app."""
    return make_policy(app, selector={"podSelector": {"matchLabels": {"app": app}}}, **spec)


def of(app: str, index: int, **more: Any) -> Obj:
    """A pod of an app, for the cluster's own scheduler."""
    made = pod(f"{app}-{index}", scheduler="default-scheduler", cpu="10m", memory="1Mi", **more)
    made["metadata"]["labels"] = {"app": app}
    return made


def by_node(cluster: Client, app: str) -> collections.Counter[str]:
    """How many pods of an app each node has."""
    placements = cluster.placements("default")
    return collections.Counter(n for p, n in placements.items() if n and p.rpartition("/")[2].startswith(app))


def wait_for_policies(cluster: Client, extender: Extender, count: int) -> None:
    """Wait until the extender goes by so many."""
    cluster.wait_for(lambda: extender.metric("moorage_policies", state="in_force") == count, _WAIT)


def post(extender: Extender, verb: str, body: Any) -> Any:
    """Ask as kube-scheduler does."""
    request = urllib.request.Request(
        f"{extender.url}/{verb}", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.loads(response.read())


def test_a_burst_never_overshoots(crowd: ControlPlane) -> None:
    """200 pods at once: as many as the limits and the pools allow are bound, and never one more."""
    cluster = crowd.admin
    cluster.apply([node(f"n{index}", pool="od" if index < 2 else "spot") for index in range(6)])
    items = [
        {"name": "od", "selector": {"matchLabels": {"pool": "od"}}, "max": 15},
        {"name": "spot", "selector": {"matchLabels": {"pool": "spot"}}, "max": 40},
    ]
    cluster.apply(
        [
            selecting("limited", limits=[{"topologyKey": "kubernetes.io/hostname", "maxPods": 10}]),
            selecting("pooled", pools={"whenFull": "next", "items": items}),
        ]
    )
    with Extender(crowd, "--enable-bind") as extender:
        wait_for_policies(cluster, extender, 2)
        cluster.apply([of(app, index) for index in range(100) for app in ("limited", "pooled")], threads=8)
        most: collections.Counter[str] = collections.Counter()
        with kube_scheduler(crowd, extender.url, bind=True):

            def full() -> bool:
                limited, pooled = by_node(cluster, "limited"), by_node(cluster, "pooled")
                on_demand = sum(count for name, count in pooled.items() if name in ("n0", "n1"))
                assert all(count <= 10 for count in limited.values()), limited
                assert on_demand <= 15, pooled
                assert pooled.total() - on_demand <= 40, pooled
                most["limited"], most["pooled"] = limited.total(), pooled.total()
                return most == {"limited": 60, "pooled": 55}

            cluster.wait_for(full, _WAIT, "all that is allowed is bound")
            bound = next(p for p in cluster.list("Pod") if p["spec"].get("nodeName"))
            assert bound["metadata"]["annotations"][ANNOTATION] in ("limited", "pooled")
            assert extender.metric("moorage_extender_requests_total", verb="bind", outcome="success") >= 115
        assert by_node(cluster, "limited").total() == 60
        assert by_node(cluster, "pooled").total() == 55


def test_what_is_not_bound(crowd: ControlPlane) -> None:
    """Pods of other schedulers, pods that wait no more, and whatever does not say which pod it means.

    By an account that may do just what is said to be needed.
    """
    cluster = crowd.admin
    rules = [permission.rule() for permission in needed_by_extender(full=False, bind=True)]
    account = crowd.user("extender", rules)
    cluster.apply([node("a"), node("b")])
    with Extender(crowd, "--enable-bind", kubeconfig=account) as extender:
        own = cluster.create(of("mine", 0))["metadata"]
        other = cluster.create(pod("other", scheduler="somebody-else"))["metadata"]
        gated = cluster.create(pod("gated", scheduler="default-scheduler", schedulingGates=[{"name": "g"}]))

        def bind(meta: Obj, where: str = "a", **change: Any) -> str:
            body = {"PodName": meta["name"], "PodNamespace": "default", "PodUID": meta["uid"], "Node": where}
            said: str = post(extender, "bind", body | change)["Error"]
            return said

        assert "scheduler somebody-else" in bind(other)
        assert "scheduling gates" in bind(gated["metadata"])
        assert bind(own, PodUID="another") == "the pod is gone"
        assert bind(own, where="nowhere") == "node nowhere is not known"
        with pytest.raises(urllib.error.HTTPError) as refused:
            bind(own, PodUID="")
        assert refused.value.code == 400
        assert b"PodUID is missing" in refused.value.read()
        refused.value.close()
        assert cluster.node_of(own["name"]) is None

        assert bind(own) == ""
        assert cluster.node_of(own["name"]) == "a"
        assert bind(own) == ""  # asked again since the answer got lost
        assert bind(own, where="b") == "the pod is bound to node a already"
        assert "missing permission" not in extender.log
    with Extender(crowd, "--enable-bind", kubeconfig=crowd.user("nobody", []), wait=False) as extender:
        assert extender.process.wait(60) == 1
        assert "missing permission: create pods/binding" in extender.log


def test_it_does_not_bind_unless_told_to(crowd: ControlPlane) -> None:
    with Extender(crowd) as extender:
        body = {"PodName": "p", "PodNamespace": "default", "PodUID": "u", "Node": "a"}
        assert "--enable-bind" in post(extender, "bind", body)["Error"]
    with Extender(crowd, "--enable-bind", "--listen", "0.0.0.0:0", wait=False) as extender:
        assert extender.process.wait(30) == 1
        assert "--client-ca" in extender.log


def test_scheduling_goes_on_while_it_is_away(crowd: ControlPlane) -> None:
    """Killed in the middle of 500 pods: all are placed; when it is back the policy applies again."""
    cluster = crowd.admin
    cluster.apply(
        [node(f"n{index}", pods="500", **{"disk": "ssd"} if index == 0 else {}) for index in range(4)]
    )
    cluster.apply([selecting("web", nodes=SSD)])
    with Extender(crowd) as extender:
        wait_for_policies(cluster, extender, 1)
        with kube_scheduler(crowd, extender.url):
            first, second = ([of("web", index) for index in part] for part in (range(250), range(250, 500)))
            creator = threading.Thread(target=cluster.apply, args=(first,), kwargs={"threads": 2})
            creator.start()
            cluster.wait_for(lambda: by_node(cluster, "web").total() >= 40, _WAIT)
            extender.process.kill()
            before = by_node(cluster, "web")
            creator.join()
            cluster.apply(second)
            cluster.wait_for(lambda: by_node(cluster, "web").total() == 500, _WAIT, "no pod is lost")
            assert before["n0"] >= 40
            assert len(by_node(cluster, "web")) == 4  # without it pods go everywhere
            with Extender(crowd, port=extender.port) as again:
                wait_for_policies(cluster, again, 1)
                cluster.apply([of("web", 5000 + index) for index in range(10)])
                cluster.wait_for(lambda: by_node(cluster, "web-500").total() == 10, _WAIT)
                assert set(by_node(cluster, "web-500")) == {"n0"}


def test_one_that_binds_may_start_after_the_scheduler(crowd: ControlPlane) -> None:
    """Until then no pod is bound, and none is lost."""
    cluster = crowd.admin
    cluster.apply([node("a"), node("b", disk="ssd"), selecting("web", nodes=SSD)])
    with Extender(crowd) as extender:
        port = extender.port  # free again in a moment
    with kube_scheduler(crowd, f"http://127.0.0.1:{port}/scheduler", bind=True):
        cluster.apply([of("web", index) for index in range(10)])
        cluster.wait_for(lambda: cluster.events("web-0", reason="FailedScheduling"), _WAIT)
        assert not by_node(cluster, "web")
        with Extender(crowd, "--enable-bind", port=port):
            cluster.wait_for(lambda: by_node(cluster, "web").total() == 10, _WAIT, "no pod is lost")
            assert set(by_node(cluster, "web")) == {"b"}


def test_mutual_tls(crowd: ControlPlane, tmp_path: Path) -> None:
    """kube-scheduler shows its certificate and has pods bound; whoever shows none gets nothing but health."""
    cluster = crowd.admin
    cluster.apply([node("a"), node("b", disk="ssd"), selecting("web", nodes=SSD)])
    authority = Authority(tmp_path)
    server, client = authority.issue("extender", hosts=("127.0.0.1",)), authority.issue("kube-scheduler")
    options = ("--tls-cert", str(server.certificate), "--tls-key", str(server.key))
    with Extender(
        crowd, "--enable-bind", *options, "--client-ca", str(authority.certificate), ca=authority.certificate
    ) as extender:
        wait_for_policies(cluster, extender, 1)
        tls = ssl.create_default_context(cafile=str(authority.certificate))
        request = urllib.request.Request(
            f"{extender.url}/filter", b"{}", {"Content-Type": "application/json"}
        )
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=10, context=tls)
        assert refused.value.code == 403
        assert b"client certificate" in refused.value.read()
        refused.value.close()
        files = {"ca_file": authority.certificate, "cert_file": client.certificate, "key_file": client.key}
        with kube_scheduler(
            crowd, extender.url, bind=True, **{key: str(path) for key, path in files.items()}
        ):
            cluster.apply([of("web", index) for index in range(3)])
            cluster.wait_for(lambda: by_node(cluster, "web").total() == 3, _WAIT)
            assert set(by_node(cluster, "web")) == {"b"}
        assert extender.metric("moorage_extender_requests_total", verb="bind", outcome="success") == 3
