"""The view of nodes and of the pod that a user's function gets."""

import gc
import weakref

import numpy as np
import pytest

from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.view import Nodes as CoreNodes
from moorage.plugins.adapted import candidates
from moorage.plugins.nodes import Nodes, NodeValues, _columns
from moorage.plugins.pod import Pod
from tests.kit.builders import read_node, read_pod


@pytest.fixture
def snapshot():
    snapshot = Snapshot()
    snapshot.set_node(read_node("a", labels={"gen": "1", "price": "0.5"}, allocatable={"cpu": "2"}))
    snapshot.set_node(read_node("b", labels={"gen": "2", "price": "n/a"}, unschedulable=True))
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    snapshot.set_node(read_node("c", labels={"price": "-3"}, taints=[taint]))
    snapshot.add_pod(0, read_pod("p", cpu="500m", memory="1Gi"))
    return snapshot


@pytest.fixture(params=["all", "some", "with-a-hole"])
def nodes(request, snapshot):
    """The same three nodes, seen as the beginning of the table, by their rows, and with a free row among them."""
    if request.param == "some":
        return Nodes(snapshot, np.array([0, 1, 2]))
    if request.param == "with-a-hole":
        snapshot.set_node(read_node("gone"))
        snapshot.drop_node("a")
        snapshot.drop_node("gone")
        row = snapshot.set_node(read_node("a", labels={"gen": "1", "price": "0.5"}, allocatable={"cpu": "2"}))
        snapshot.add_pod(row, read_pod("p", cpu="500m", memory="1Gi"))
        return Nodes(snapshot, np.array([row, 1, 2]))
    return Nodes(snapshot)


def test_who_they_are(nodes):
    assert len(nodes) == 3
    assert list(nodes.names) == ["a", "b", "c"]
    assert [node.name for node in nodes] == ["a", "b", "c"]
    assert nodes[-1].name == "c"
    with pytest.raises(IndexError, match="there are 3 nodes, no number 3"):
        nodes[3]


def test_labels_are_compared_as_a_whole(nodes):
    gen = nodes.label("gen")
    assert list(gen == "1") == [True, False, False]
    assert list(gen != "1") == [False, True, True]
    assert list(gen == "nowhere") == [False] * 3
    assert list(gen == None) == [False, False, True]  # noqa: E711
    assert list(gen == gen) == [True] * 3
    assert list(gen.isin(["1", "2"])) == [True, True, False]
    assert list(gen.matching(lambda value: value > "1")) == [False, True, False]
    assert (list(gen), len(gen), gen[1]) == (["1", "2", None], 3, "2")
    assert list(np.asarray(gen)) == ["1", "2", None]
    assert list(nodes.has_label("gen")) == [True, True, False]
    assert list(nodes.label("nobody-has-it") == "1") == [False] * 3


def test_mistakes_with_labels_are_named(nodes):
    with pytest.raises(TypeError, match=r"cannot be compared with 1; see label_number"):
        _ = nodes.label("gen") == 1
    with pytest.raises(TypeError, match="neither true nor false"):
        bool(nodes.label("gen"))
    with pytest.raises(TypeError, match="isin"):
        nodes.label("gen").isin("12")


def test_a_value_is_asked_about_once_and_only_if_a_node_has_it(snapshot, nodes):
    snapshot.label("gen").set(0, "9")
    asked: list[str] = []

    def asks(value: str) -> bool:
        asked.append(value)
        return True

    nodes.label("gen").matching(asks)
    assert len(asked) == len(set(asked))
    assert set(asked) == {value for value in nodes.label("gen") if value is not None}


def test_numbers_from_labels(nodes):
    assert list(nodes.label_number("price", default=7.0)) == [0.5, 7.0, -3.0]
    assert list(nodes.label_number("price", default=0)) == [0.5, 0.0, -3.0]
    assert list(nodes.label_number("nobody-has-it", default=1)) == [1.0] * 3


def test_numbers_follow_the_labels(snapshot):
    nodes = Nodes(snapshot)
    assert nodes.label_number("price", default=0)[0] == 0.5
    snapshot.set_node(read_node("a", labels={"price": "8"}))
    snapshot.set_node(read_node("d", labels={"price": "inf"}))
    assert list(Nodes(snapshot).label_number("price", default=0)) == [8.0, 0.0, -3.0, 0.0]


def test_amounts_in_base_units(nodes):
    assert list(nodes.allocatable("cpu")) == [2000, 4000, 4000]
    assert list(nodes.requested("cpu")) == [500, 0, 0]
    assert list(nodes.free("cpu")) == [1500, 4000, 4000]
    assert list(nodes.free("pods")) == [109, 110, 110]
    assert list(nodes.pod_count) == [1, 0, 0]
    assert list(nodes.allocatable("example.com/none")) == [0, 0, 0]


def test_taints_and_cordons(nodes):
    assert list(nodes.has_taint("gpu")) == [False, False, True]
    assert list(nodes.has_taint("gpu", "yes", "NoSchedule")) == [False, False, True]
    assert list(nodes.has_taint("gpu", "no")) == [False] * 3
    assert list(nodes.has_taint("gpu", effect="NoExecute")) == [False] * 3
    assert [len(taints) for taints in nodes.taints] == [0, 0, 1]
    assert list(nodes.unschedulable) == [False, True, False]


def test_values_by_name(nodes):
    values = NodeValues({"a": 1, "c": 3.5, "elsewhere": 9})
    for _ in range(2):
        assert list(nodes.values(values, default=-1)) == [1.0, -1.0, 3.5]
    assert list(nodes.values({"b": 2}, default=0)) == [0.0, 2.0, 0.0]
    assert (len(values), values.get("a"), values.get("b")) == (3, 1.0, None)
    with pytest.raises(ValueError, match="node 'a' must be a finite number"):
        NodeValues({"a": float("nan")})


def test_values_by_name_follow_the_nodes_and_the_object(snapshot):
    values = NodeValues({"a": 1, "d": 4})
    assert list(Nodes(snapshot).values(values, default=0)) == [1, 0, 0]
    snapshot.set_node(read_node("d"))
    assert list(Nodes(snapshot).values(values, default=0)) == [1, 0, 0, 4]
    assert list(Nodes(snapshot).values(NodeValues({"a": 2}), default=0)) == [2, 0, 0, 0]


def test_what_is_kept_is_bounded_and_keeps_nothing_alive(snapshot):
    nodes = Nodes(snapshot)
    alive = []
    for number in range(40):
        values = NodeValues({"a": number})
        assert nodes.values(values, default=0)[0] == number
        alive.append(weakref.ref(values))
    assert len(_columns[snapshot]) <= 16
    del values
    gc.collect()
    assert [ref for ref in alive if ref() is not None] == []


def test_each_for_those_who_do_not_want_columns(nodes):
    assert list(nodes.each(lambda node: len(node.name) + len(node.labels))) == [3.0, 3.0, 2.0]


def test_nobody_can_write_to_the_scheduler_s_own_columns(snapshot):
    nodes = Nodes(snapshot)
    for column in (nodes.allocatable("cpu"), nodes.pod_count, nodes.unschedulable, nodes.names):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = column[1]


def test_free_rows_are_no_candidates(snapshot):
    snapshot.drop_node("b")
    seen, places = candidates(CoreNodes(snapshot))
    assert (list(seen.names), np.asarray(places).tolist()) == (["a", "c"], [0, 2])
    seen, places = candidates(CoreNodes(snapshot, np.array([1, 2])))
    assert (list(seen.names), np.asarray(places).tolist()) == (["c"], [1])
    seen, places = candidates(CoreNodes(snapshot, np.array([2, 0])))
    assert (list(seen.names), places) == (["c", "a"], slice(None))


def test_without_any_node(snapshot):
    seen, _ = candidates(CoreNodes(Snapshot()))
    assert (len(seen), list(seen.names), list(seen)) == (0, [], [])
    assert seen.label_number("x", default=0).shape == (0,)
    assert (seen.label("x") == "y").shape == (0,)


# -- the pod -------------------------------------------------------------------------------------

_OWN = ("name", "namespace", "key", "uid", "labels", "owner", "created", "nominated_node")
_SPEC = ("requests", "priority", "priority_class", "scheduler_name", "node_selector", "tolerations", "images")


def test_the_pod():
    raw = read_pod("web", cpu="500m", labels={"app": "web"}, priority=7, schedulerName="moorage")
    pod = Pod(raw)
    assert (pod.name, pod.namespace, pod.key, pod.labels) == ("web", "default", "default/web", {"app": "web"})
    assert (pod.priority, pod.scheduler_name, pod.owner) == (7, "moorage", None)
    assert pod.requests == {"cpu": 500}
    assert (pod.request("cpu"), pod.request("nvidia.com/gpu")) == (500, 0)
    assert repr(pod) == "<Pod default/web>"
    with pytest.raises(AttributeError, match="does not keep them"):
        _ = pod.annotations
    with pytest.raises(AttributeError):
        pod.name = "other"  # type: ignore[misc]


def test_a_pure_plugin_sees_what_alike_pods_share():
    pod = Pod(read_pod("web"), spec_only=True)
    for name in _SPEC:
        getattr(pod, name)
    for name in _OWN:
        with pytest.raises(AttributeError, match=rf"pod\.{name} is not for a plugin that is pure"):
            getattr(pod, name)
