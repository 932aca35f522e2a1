"""/debug of the running operator."""

import json
import socket
import urllib.error
import urllib.request
from typing import Any

import pytest

from tests.controlplane.client import Client
from tests.controlplane.controlplane import ControlPlane
from tests.kit.extender_process import Extender
from tests.kit.manifests import node, pod
from tests.kit.operator import Operator

pytestmark = pytest.mark.timeout(180)

SECRET = "s3cr3t-v4lue"


class Debugging:
    """The pages of an operator that serves them."""

    def __init__(self, operator: Operator | Extender) -> None:
        log = operator.process.wait_for_output("Debugging at http://")
        self.url = log.split("Debugging at ")[1].split()[0]

    def text(self, page: str) -> str:
        with urllib.request.urlopen(self.url + page, timeout=60) as response:
            text: str = response.read().decode()
            return text

    def lines(self, page: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text(page).splitlines()]


def test_dumps_and_the_comparison(control_plane: ControlPlane, cluster: Client) -> None:
    cluster.apply([node(f"n{i}", cpu="1") for i in range(3)])
    with Operator(control_plane, "--debug-listen", "127.0.0.1:0") as operator:
        debugging = Debugging(operator)
        placed = pod("placed", cpu="250m")
        placed["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "value": SECRET}]
        placed["metadata"]["annotations"] = {"note": SECRET}
        cluster.create(placed)
        huge = pod("huge", cpu="64")
        huge["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "value": SECRET}]
        cluster.create(huge)
        node_name = cluster.wait_for(lambda: cluster.node_of("placed"), 60)
        cluster.wait_for(lambda: cluster.condition("huge"), 60)
        cluster.wait_for(lambda: operator.metric("scheduler_cache_size", type="assumed_pods") == 0, 60)
        assert "compare" in debugging.text("")
        nodes = {line["node"]: line for line in debugging.lines("cache")}
        assert sorted(nodes) == ["n0", "n1", "n2"]
        line = nodes[node_name]
        assert (line["allocatable"]["cpu"], line["requested"]["cpu"]) == (1000, 250)
        (on_it,) = line["pods"]
        assert (on_it["pod"], on_it["assumed"], on_it["requests"]["cpu"]) == ("default/placed", False, 250)
        (waiting,) = debugging.lines("queue")
        assert (waiting["pod"], waiting["queue"]) == ("default/huge", "unschedulable")
        assert waiting["plugins"] == ["NodeResourcesFit"]
        assert waiting["attempts"] >= 1
        assert debugging.lines("compare") == [{"differences": 0}]
        for page in ("cache", "queue", "compare"):
            assert SECRET not in debugging.text(page)


def test_an_extender_has_them_too(control_plane: ControlPlane, cluster: Client) -> None:
    cluster.apply([node("n")])
    cluster.create(pod("p", cpu="250m"))
    cluster.bind("p", "n")
    with Extender(control_plane, "--debug-listen", "127.0.0.1:0") as extender:
        debugging = Debugging(extender)
        (line,) = debugging.lines("cache")
        assert [each["pod"] for each in line["pods"]] == ["default/p"]
        assert debugging.lines("compare") == [{"differences": 0}]
        assert "queue" not in debugging.text("")
        assert "samples" in debugging.text("profile?seconds=0.2")


def test_profiles(control_plane: ControlPlane, cluster: Client) -> None:
    """The loop that `moorage run` has: a signal must reach the interpreter through it."""
    cluster.apply([node(f"n{i}", cpu="32") for i in range(20)])
    with Operator(control_plane, "--debug-listen", "127.0.0.1:0") as operator:
        debugging = Debugging(operator)
        cluster.apply([pod(f"p{i}") for i in range(300)])
        table = debugging.text("profile?seconds=2")
        assert "s of CPU time in 2." in table
        assert "moorage" in table
        heap = json.loads(debugging.text("heap?seconds=0.2"))
        assert heap["resident"] > 10_000_000
        assert heap["objects"]
        assert debugging.lines("compare") == [{"differences": 0}]


def test_it_is_off_unless_asked_for_and_never_on_other_addresses(
    control_plane: ControlPlane, cluster: Client
) -> None:
    with Operator(control_plane) as operator:
        assert "Debugging" not in operator.log
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://127.0.0.1:{operator.port}/debug/", timeout=10)
    refused = Operator(control_plane, "--debug-listen", "0.0.0.0:0", wait=False)
    assert refused.process.wait(30) == 2
    assert "debug-listen: must be a loopback address such as 127.0.0.1, not 0.0.0.0:0" in refused.log


def test_an_address_that_is_taken_is_an_error(control_plane: ControlPlane, cluster: Client) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        operator = Operator(control_plane, "--debug-listen", address, wait=False)
        assert operator.process.wait(60) == 1
        assert f"debug-listen: {address} cannot be listened at" in operator.log


def test_slow_decisions_are_logged(control_plane: ControlPlane, cluster: Client) -> None:
    cluster.apply([node("n")])
    args = ("--slow-decision", "0.000001", "--log-format", "json")
    with Operator(control_plane, *args) as operator:
        cluster.create(pod("p"))
        cluster.wait_for(lambda: cluster.node_of("p"), 60)
        log = operator.process.wait_for_output("Slow decision")
        lines = [json.loads(line) for line in log.splitlines() if "Slow decision" in line]
        line = next(each for each in lines if each.get("pod") == "default/p")
        assert (line["node"], line["attempt"], line["result"]) == ("n", 1, "scheduled")
        assert line["phases"]["filter"] > 0
        assert operator.metric("moorage_slow_decisions_total") >= 1
