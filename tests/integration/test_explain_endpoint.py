"""The running scheduler explains pods to those who may get them."""

import json
import urllib.error
import urllib.request
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from moorage.cli import main
from tests.controlplane.client import Client, wait_for
from tests.controlplane.controlplane import ControlPlane
from tests.controlplane.etcd import free_port
from tests.kit.manifests import node, pod
from tests.kit.operator import Operator

READS_PODS = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]


def token(control_plane: ControlPlane, name: str, namespaced: Any) -> str:
    config = yaml.safe_load(control_plane.user(name, namespaced=namespaced).read_text())
    found: str = config["users"][0]["user"]["token"]
    return found


def ask(port: int, path: str, bearer: str | None = None) -> tuple[int, Any]:
    headers = {} if bearer is None else {"Authorization": f"Bearer {bearer}"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/explain/{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, json.loads(response.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


@pytest.mark.timeout(180)
def test_only_who_may_get_the_pod_gets_an_explanation(control_plane: ControlPlane, cluster: Client) -> None:
    cluster.apply(
        [node("a", cpu="1"), {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}]
    )
    waiting = pod("big", cpu="3", namespace="shop")
    waiting["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "value": "hush-hush"}]
    cluster.apply([waiting, pod("small", cpu="500m", namespace="shop"), pod("other")])
    seller = token(control_plane, "seller", {"shop": READS_PODS})
    stranger = token(control_plane, "stranger", {"default": READS_PODS})
    port = free_port()
    with Operator(control_plane, "--explain-listen", f"127.0.0.1:{port}"):
        cluster.wait_for(lambda: cluster.node_of("small", "shop"), 60, "small bound")
        cluster.wait_for(lambda: cluster.condition("big", "shop"), 60, "a word about big")
        assert ask(port, "shop/big")[0] == 401
        assert ask(port, "shop/big", "made-up")[0] == 401
        assert ask(port, "shop/big", stranger)[0] == 403
        assert ask(port, "shop/nobody", stranger)[0] == 403
        assert ask(port, "default/other", seller)[0] == 403
        assert ask(port, "shop/nobody", seller)[0] == 404
        status, found = ask(port, "shop/big", seller)
        assert status == 200
        assert found["waits"][0] == {"for": "room", "text": "NodeResourcesFit: 1 Insufficient cpu"}
        assert found["wouldHelp"][0]["steps"][0]["action"] == "addResource"
        assert found["queue"]["place"] in ("unschedulable", "backoff", "active")
        assert found["queue"]["attempts"] >= 1
        assert found["attempts"][0]["result"] == "unschedulable"
        assert found["attempts"][0]["plugins"] == ["NodeResourcesFit"]
        assert found["leading"] is True
        assert "hush-hush" not in json.dumps(found)
        assert "PASSWORD" not in json.dumps(found)
        words = ["explain", "shop/big", "--server", f"http://127.0.0.1:{port}", "--kubeconfig"]
        shown = CliRunner().invoke(main, [*words, str(control_plane.folder / "seller.kubeconfig")])
        assert shown.exit_code == 0, shown.output
        assert "In the queue (" in shown.stdout
        assert "Last attempts" in shown.stdout
        assert "more cpu on node a: it goes to a" in shown.stdout
        refused = CliRunner().invoke(main, [*words, str(control_plane.folder / "stranger.kubeconfig")])
        assert refused.exit_code == 2
        assert "answers 403: not allowed to get pod shop/big" in refused.stderr
        status, bound = ask(port, "shop/small", seller)
        assert (status, bound["node"], bound["decision"]["chosen"]) == (200, "a", "a")
        assert bound["attempts"][-1]["result"] == "scheduled"
        # Asking has changed nothing: the big pod is placed once there is room, and where it said it would.
        for _ in range(5):
            assert ask(port, "shop/big", seller)[1]["wouldHelp"] == found["wouldHelp"]
        cluster.apply([node("b", cpu="4")])
        wait_for(lambda: cluster.node_of("big", "shop") == "b", 60, "big on b")
