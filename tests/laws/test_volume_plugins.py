"""The plugins about volumes on clusters that have some: the checks of every plugin, and their own scalar reference."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from moorage.adapters.kube.storage_defaults import complete_storage
from moorage.cli.cluster import Intake, Source
from moorage.core.framework.interface import Rejected, ScorePlugin, Skip
from moorage.core.model.csi_migration import is_in_tree
from moorage.core.model.storage import InTreeSource, PersistentVolume, StorageClass
from moorage.core.profile import REGISTRY
from tests.kit.clusters import cases, random_case
from tests.kit.plugin_checks import CHECKS, alive_rows, scores_of, told
from tests.kit.strategies import Cluster, build
from tests.kit.volume_rules import VOLUME_RULES, World

#: What the plugins are held to elsewhere: their reference looks at more than the pod's template.
OWN = ("filter_by_the_rules", "score_by_the_rules")


@st.composite
def questions(draw):
    """A cluster with volumes, and the pods to be placed in it.

    What Hypothesis draws is simple and shrinks; what a random generator draws from a seed is full of volumes.
    """
    if draw(st.booleans()):
        case = random_case(Random(draw(st.integers(0, 1 << 32))), ("volumes",))
    else:
        case = draw(cases(themes=("volumes",)))
    intake = Intake()
    for obj in case["objects"]:
        intake.add(obj, Source())
    for pod in case["pods"]:
        intake.add_pod(pod, Source())
    read = intake.cluster(0.0)
    assert intake.errors == []
    return Cluster(tuple(read.nodes), tuple(read.bound), tuple(complete_storage(read.storage))), read.asked


@pytest.mark.parametrize("plugin", VOLUME_RULES)
@given(question=questions())
def test_laws_hold_with_volumes(plugin, question):
    cluster, pods = question
    for pod in pods[:1]:
        for name, check in CHECKS.items():
            if name not in OWN:
                note(f"check: {name}")
                check(REGISTRY[plugin](), cluster, pod)


@pytest.mark.parametrize("name", VOLUME_RULES)
@given(question=questions())
def test_by_the_rules(name, question):
    """PreFilter, Filter and Score say what the scalar reference says, word for word."""
    cluster, pods = question
    cluster = replace(cluster, storage=tuple(map(_not_in_tree, cluster.storage)))
    plugin: Any = REGISTRY[name]()
    rules, world = VOLUME_RULES[name], World(cluster)
    for pod in (pod for pod in pods if not pod.volumes.in_tree):
        snapshot = build(cluster, holes=(0,))
        rows = alive_rows(snapshot)
        whole = rules.whole(pod, world)
        answer = plugin.pre_filter(pod, snapshot)
        if whole is not None:
            assert isinstance(answer, Rejected)
            assert (whole.reasons, whole.code) == (answer.reasons, answer.code)
            continue
        assert not isinstance(answer, Rejected)
        if all(w is None for w in (r.whole(pod, world) for r in VOLUME_RULES.values())):
            expected = {node.name: tuple(rules.node(pod, node, world)) for node in cluster.nodes}
            if answer is Skip.SKIP:
                assert set(expected.values()) <= {()}
            else:
                assert expected == told(plugin, snapshot, pod, rows)
        if isinstance(plugin, ScorePlugin):
            scores = scores_of(plugin, snapshot, pod, rows)
            assert scores is not None
            assert rules.score is not None
            by_name = {snapshot.name_at(int(row)): int(s) for row, s in zip(rows, scores, strict=True)}
            for node in cluster.nodes:
                assert rules.score(pod, node, world) == by_name[node.name]


def _not_in_tree(obj):
    """A disk of an in-tree plugin as one that nobody attaches, and a class of such a plugin as one of some driver."""
    if isinstance(obj, PersistentVolume) and isinstance(obj.source, InTreeSource):
        return replace(obj, source=None)
    if isinstance(obj, StorageClass) and is_in_tree(obj.provisioner):
        return replace(obj, provisioner="some.test")
    return obj
