"""`moorage.testing`, as its users use it."""

import pytest

import moorage
from moorage.configuration.read import ConfigError
from moorage.plugins.declare import DeclarationError, collecting
from moorage.plugins.loading import PluginLoadError
from moorage.testing import Cluster, PluginFailed, node, pod


@pytest.fixture(autouse=True)
def _apart():
    with collecting():
        yield


@pytest.fixture
def cheaper_first():
    @moorage.score(weight=2)
    def cheaper_first(pod, nodes, *, label="price"):
        return -nodes.label_number(label, default=0)

    return cheaper_first


def test_five_lines(cheaper_first):
    dear, cheap = node("dear", labels={"price": "9"}), node("cheap", labels={"price": "2"})
    cluster = Cluster(dear, cheap, plugins=cheaper_first)
    answer = cluster.place(pod("web"))
    assert answer.node == "cheap"
    assert answer.scores("cheaper_first") == {"cheap": 200, "dear": 0}


def test_a_file_is_as_good(tmp_path):
    path = tmp_path / "rules.py"
    path.write_text("import moorage\n\n@moorage.filter\ndef none(pod, nodes):\n    return False, 'closed'\n")
    for given in (path, str(path), [path]):
        answer = Cluster(node("a"), plugins=given).place(pod("web"))
        assert (answer.node, answer.why_not("a")) == (None, "none: closed")
        assert answer.explain().splitlines()[1] == "  a: none: closed"


def test_pods_take_room_from_those_that_come_later():
    cluster = Cluster(node("a", cpu="1"), pod("old", cpu="500m", node="a"))
    assert cluster.explain(pod("one", cpu="400m")).node == "a"
    assert cluster.explain(pod("one", cpu="400m")).node == "a", "to explain changes nothing"
    assert cluster.place(pod("one", cpu="400m")).node == "a"
    refused = cluster.place(pod("two", cpu="400m"))
    assert (refused.node, refused.feasible) == (None, ())
    assert refused.why_not("a") == "NodeResourcesFit: Insufficient cpu"
    assert "Insufficient cpu" in refused.message


def test_a_configuration_sets_arguments_and_weights(cheaper_first):
    config = """
        profiles:
        - plugins: {score: {enabled: [{name: cheaper_first, weight: 5}]}}
          pluginConfig: [{name: cheaper_first, args: {label: cost}}]
    """
    nodes = [node("a", labels={"cost": "1", "price": "5"}), node("b", labels={"cost": "5", "price": "1"})]
    answer = Cluster(*nodes, plugins=cheaper_first, config=config).explain(pod("p"))
    assert answer.scores("cheaper_first") == {"a": 500, "b": 0}
    assert answer.explain().startswith("default/p: a\n  a: ")


def test_faults_are_told(cheaper_first, tmp_path):
    with pytest.raises(ValueError, match=r"objects\[0\].*cpu"):
        Cluster(node("a", cpu="many"))
    with pytest.raises(ValueError, match="pod"):
        Cluster(node("a")).place(pod("p", cpu="many"))
    with pytest.raises(TypeError, match="is no plugin"):
        Cluster(node("a"), plugins=len)
    with pytest.raises(DeclarationError, match="cannot be read"):
        Cluster(node("a"), plugins=tmp_path / "missing.py")
    with pytest.raises(PluginLoadError, match="already"):
        Cluster(node("a"), plugins=[cheaper_first, cheaper_first])
    with pytest.raises(ConfigError, match="nobody"):
        Cluster(node("a"), config={"profiles": [{"pluginConfig": [{"name": "nobody", "args": {"x": 1}}]}]})


def test_a_plugin_that_raises_fails_the_test():
    @moorage.score
    def broken(pod, nodes):
        return 1 // 0

    with pytest.raises(PluginFailed, match=r"broken\(\) raised ZeroDivisionError"):
        Cluster(node("a"), plugins=broken).place(pod("p"))


@pytest.mark.parametrize("kind", ["score", "filter"])
def test_a_promise_to_be_pure_is_held_to(kind):
    def best(pod, nodes):
        cpu = nodes.free("cpu")
        return cpu == cpu.max()

    def honest(pod, nodes):
        return nodes.free("cpu") > 3000

    nodes = [node("a", cpu="8"), node("b", cpu="4")]
    declare = getattr(moorage, kind)
    with pytest.raises(PluginFailed, match="plugin best is declared to be pure, but its answer for node b"):
        Cluster(*nodes, plugins=declare(pure=True)(best)).explain(pod("p"))
    assert Cluster(*nodes, plugins=declare(pure=True)(honest)).place(pod("p")).node == "a"


async def test_refresh_is_in_the_test_s_hands():
    @moorage.plugin(name="fresh", refresh_every=60)
    class Fresh:
        def __init__(self):
            self.best = moorage.NodeValues()

        async def refresh(self):
            self.best = moorage.NodeValues({"b": 1})

        def score(self, pod, nodes):
            return nodes.values(self.best, default=0)

    cluster = Cluster(node("a"), node("b"), plugins=Fresh)
    assert cluster.explain(pod("p")).scores("fresh") == {"a": 0, "b": 0}
    await cluster.refresh()
    assert cluster.explain(pod("p")).scores("fresh") == {"a": 0, "b": 100}
