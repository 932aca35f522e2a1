"""What kube-scheduler asks, read from JSON; our own client writes it."""

import orjson
import pytest

from moorage.adapters.extender import wire
from moorage.adapters.extender.fields import Malformed
from moorage.adapters.extender_server.reading import (
    BindingArgs,
    read_binding_args,
    read_nodes_args,
    read_preemption_args,
)
from moorage.core.model.extender import Victims
from moorage.core.model.pod import PodRef
from tests.kit.builders import make_node, make_pod

POD = orjson.dumps(make_pod())
REF = PodRef("default", "victim", "uid-default-victim")


def test_names_and_whole_nodes():
    by_name = read_nodes_args(wire.node_args(POD, None, ["a", "b"]))
    assert by_name.pod["metadata"]["name"] == "web"
    assert (list(by_name.names), by_name.nodes) == (["a", "b"], None)
    nodes = [make_node("a"), make_node("b")]
    whole = read_nodes_args(wire.node_args(POD, [orjson.dumps(node) for node in nodes], ()))
    assert (list(whole.names), whole.nodes) == (["a", "b"], nodes)


def test_an_old_scheduler_spells_otherwise():
    """Before Go's names there were lower-case tags; Go reads both, and so do we."""
    args = read_nodes_args(b'{"pod": {"metadata": {}}, "nodenames": [], "nodes": null}')
    assert list(args.names) == []


def test_victims_by_uid_and_whole():
    victims = {"a": Victims((REF,), 2)}
    meta = read_preemption_args(wire.preemption_args(POD, victims, None))
    assert (meta.victims, list(meta.pods)) == ({"a": ((REF.uid,), 2)}, [])
    pod = make_pod("victim", node="a")
    whole = read_preemption_args(wire.preemption_args(POD, victims, {REF.uid: orjson.dumps(pod)}))
    assert (whole.victims, list(whole.pods)) == ({"a": ((REF.uid,), 2)}, [pod])


def test_a_binding():
    assert read_binding_args(wire.binding_args(REF, "a")) == BindingArgs(REF, "a")


@pytest.mark.parametrize(
    ("read", "body", "words"),
    [
        (read_nodes_args, b"", "not JSON"),
        (read_nodes_args, b"[]", "the body must be an object"),
        (read_nodes_args, b"{}", "Pod is missing"),
        (read_nodes_args, b'{"Pod": 1}', "Pod must be an object"),
        (read_nodes_args, b'{"Pod": {}}', "one of Nodes and NodeNames"),
        (read_nodes_args, b'{"Pod": {}, "NodeNames": [1]}', "list of strings"),
        (read_nodes_args, b'{"Pod": {}, "NodeNames": {}}', "NodeNames must be a list"),
        (read_nodes_args, b'{"Pod": {}, "Nodes": {"items": [{}]}}', "has no name"),
        (read_nodes_args, b'{"Pod": {}, "Nodes": {"items": [7]}}', "must be an object"),
        (read_preemption_args, b'{"Pod": {}, "NodeNameToMetaVictims": {"a": {"Pods": [{}]}}}', "has no UID"),
        (read_preemption_args, b'{"Pod": {}, "NodeNameToVictims": {"a": {"Pods": [3]}}}', "a victim must be"),
        (
            read_preemption_args,
            b'{"Pod": {}, "NodeNameToVictims": {"a": {"NumPDBViolations": 1.5}}}',
            "integer",
        ),
        (read_binding_args, b'{"PodName": "p", "PodNamespace": "d", "Node": "a"}', "PodUID is missing"),
        (read_binding_args, b'{"PodName": "p", "PodNamespace": "d", "PodUID": "u"}', "Node is missing"),
        (
            read_binding_args,
            b'{"PodName": "../x", "PodNamespace": "d", "PodUID": "u", "Node": "a"}',
            "PodName is",
        ),
        (
            read_binding_args,
            b'{"PodName": "p", "PodNamespace": "d", "PodUID": 5, "Node": "a"}',
            "PodUID must be",
        ),
    ],
)
def test_what_is_wrong_is_named(read, body, words):
    with pytest.raises(Malformed, match=words):
        read(body)
