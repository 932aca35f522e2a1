"""The examples of users' plugins do what they say, the way their readers would test them."""

import re
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from moorage.plugins.declare import collecting
from moorage.testing import Cluster, node, pod

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "plugins"
GPU = "nvidia.com/gpu"


@pytest.fixture(autouse=True)
def _apart():
    with collecting():
        yield


# -- price ---------------------------------------------------------------------------------------


def priced(**prices):
    return [
        node(name, labels={"example.com/price": price} if price else {}) for name, price in prices.items()
    ]


def test_the_cheapest_node_is_taken():
    cluster = Cluster(*priced(a="0.9", b="0.25", c="0.5"), plugins=EXAMPLES / "cheaper_first.py")
    answer = cluster.place(pod("web"))
    assert answer.node == "b"
    assert answer.scores("cheaper_first") == {"a": 0, "b": 200, "c": 124}


def test_a_node_whose_price_nobody_knows_is_as_dear_as_the_dearest():
    cluster = Cluster(*priced(a="0.9", b="0.1", c="", d="call-us"), plugins=EXAMPLES / "cheaper_first.py")
    assert cluster.explain(pod("web")).scores("cheaper_first") == {"a": 0, "b": 200, "c": 0, "d": 0}
    cluster = Cluster(*priced(a="", b=""), plugins=EXAMPLES / "cheaper_first.py")
    assert cluster.explain(pod("web")).scores("cheaper_first") == {"a": 0, "b": 0}


def test_the_label_can_be_another():
    config = {"profiles": [{"pluginConfig": [{"name": "cheaper_first", "args": {"label": "cost"}}]}]}
    nodes = [node("a", labels={"cost": "2"}), node("b", labels={"cost": "1"})]
    cluster = Cluster(*nodes, plugins=EXAMPLES / "cheaper_first.py", config=config)
    assert cluster.place(pod("web")).node == "b"


# -- GPUs ----------------------------------------------------------------------------------------


@pytest.fixture
def gpus():
    def with_gpu(name, generation):
        labels = {"example.com/gpu-generation": generation}
        return node(name, labels=labels, resources={GPU: "8"})

    nodes = [with_gpu("a", "ampere"), with_gpu("h", "hopper"), node("plain")]
    return Cluster(*nodes, plugins=EXAMPLES / "gpu_generation.py")


def asking(generation, count="1"):
    labels = {"example.com/gpu-generation": generation} if generation else {}
    return pod("train", labels=labels, resources={GPU: count} if count else {})


@pytest.mark.parametrize(
    ("generation", "count", "feasible"),
    [
        ("hopper", "1", ("h",)),
        ("ampere.hopper", "1", ("a", "h")),
        ("", "1", ("a", "h")),
        ("hopper", "", ("a", "h", "plain")),
    ],
)
def test_a_pod_gets_the_gpu_it_was_built_for(gpus, generation, count, feasible):
    assert gpus.explain(asking(generation, count)).feasible == feasible


def test_the_reason_names_the_generation(gpus):
    answer = gpus.explain(asking("hopper"))
    assert answer.why_not("a") == "gpu_generation: node(s) had no GPU of generation hopper"
    answer = gpus.explain(asking("blackwell.next"))
    assert answer.message.startswith(
        "0/3 nodes are available: no node has a GPU of generation blackwell or next."
    )


# -- Prometheus ----------------------------------------------------------------------------------


@pytest.fixture
async def prometheus():
    """A server that answers queries as Prometheus does; ``rates`` None: it fails."""
    state: dict[str, Any] = {"rates": {"a": "100", "b": "5000.5", "elsewhere": "1"}, "asked": []}

    async def query(request):
        state["asked"].append(request.query["query"])
        if state["rates"] is None:
            raise web.HTTPServiceUnavailable
        result = [
            {"metric": {"node": name}, "value": [1700000000.0, rate]} for name, rate in state["rates"].items()
        ]
        result.append({"metric": {}, "value": [1700000000.0, "7"]})
        return web.json_response({"status": "success", "data": {"resultType": "vector", "result": result}})

    app = web.Application()
    app.router.add_get("/api/v1/query", query)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    (address,) = runner.addresses
    state["url"] = f"http://127.0.0.1:{address[1]}"
    yield state
    await runner.cleanup()


def watching(prometheus, **args):
    config = {
        "profiles": [
            {"pluginConfig": [{"name": "quiet_network", "args": {"url": prometheus["url"], **args}}]}
        ]
    }
    return Cluster(node("a"), node("b"), node("c"), plugins=EXAMPLES / "quiet_network.py", config=config)


async def test_the_quiet_node_is_taken(prometheus):
    cluster = watching(prometheus, query="rate(x[1m])")
    assert cluster.explain(pod("p")).scores("quiet_network") == {"a": 0, "b": 0, "c": 0}, (
        "nothing is known yet"
    )
    await cluster.refresh()
    assert prometheus["asked"] == ["rate(x[1m])"]
    answer = cluster.place(pod("p"))
    assert (answer.node, answer.scores("quiet_network")) == ("a", {"a": 200, "b": 0, "c": 0})
    prometheus["rates"] = {"a": "9000", "b": "NaN", "c": "10"}
    await cluster.refresh()
    assert cluster.explain(pod("p")).scores("quiet_network") == {"a": 0, "b": 0, "c": 200}


async def test_what_it_said_last_is_used_while_it_is_away_but_not_for_ever(prometheus, caplog):
    cluster, short = watching(prometheus), watching(prometheus, max_age=0.0)
    await cluster.refresh()
    await short.refresh()
    prometheus["rates"] = None
    await cluster.refresh()
    assert "Plugin quiet_network: refresh() has failed: ClientResponseError: 503" in caplog.text
    assert cluster.explain(pod("p")).scores("quiet_network")["a"] == 200
    assert set(short.explain(pod("p")).scores("quiet_network").values()) == {0}


# -- all of them ---------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_the_documentation_shows_them(path):
    text = (EXAMPLES.parents[1] / "docs" / "plugins.md").read_text()
    assert re.search(rf"examples/plugins/{path.name}", text)
