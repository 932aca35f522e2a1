"""What alike pods share stays true when nodes change, and is asked for again only where they did."""

from typing import Any

import numpy as np
import pytest

from moorage.core.framework.alike import Alike, AlikeCache
from moorage.core.framework.answers import PreFiltered
from moorage.core.framework.interface import Reads, Reason, Verdict
from moorage.core.model.affinity import PodAffinity, PodAffinityTerm
from moorage.core.model.selector import LabelSelector
from moorage.core.model.spread import SpreadConstraint
from moorage.core.model.taint import Toleration
from moorage.core.snapshot.snapshot import Snapshot
from tests.kit.models import make_node, make_pod, make_spec


class Limit:
    """Refuses rows with so many pods, or of cordoned nodes, and scores by the pod count; notes the rows it saw."""

    def __init__(self, reads: Reads) -> None:
        self.name: Any = str(reads)
        self.reads: Any = reads
        self.seen: list[list[int]] = []

    def pre_filter(self, pod: Any, snapshot: Any) -> None:
        """Nothing to prepare."""

    def pre_score(self, pod: Any, snapshot: Any, nodes: Any) -> None:
        """Nothing to prepare."""

    def filter(self, state: Any, nodes: Any) -> Verdict:
        """By what it reads."""
        self.seen.append(nodes.rows.tolist())
        failed = nodes.pod_count > 0 if self.reads & Reads.USAGE else nodes.unschedulable
        return Verdict((Reason("no"),), failed[None, :])

    def score(self, state: Any, nodes: Any) -> Any:
        """The pod count."""
        return nodes.pod_count.copy()

    def normalize(self, raw: Any) -> Any:
        """In range."""
        return raw

    def wakes_on(self) -> Any:
        """Not asked here."""
        return ()


@pytest.fixture
def snapshot():
    """Nine nodes."""
    snapshot = Snapshot()
    for number in range(9):
        snapshot.set_node(make_node(f"n{number}"))
    return snapshot


@pytest.fixture
def node_reader():
    """A plugin whose answers depend on nodes alone."""
    return Limit(Reads.NODE)


@pytest.fixture
def usage_reader():
    """A plugin whose answers depend on the pods, too."""
    return Limit(Reads.USAGE)


@pytest.fixture
def alike(snapshot, node_reader, usage_reader):
    """The answers of both plugins, and the scores of the second."""
    return Alike(PreFiltered(), [(node_reader, None), (usage_reader, None)], [(usage_reader, None)], snapshot)


def fitting(alike):
    """The rows that fit."""
    return np.flatnonzero(alike.fits).tolist()


def test_free_rows_never_fit(alike):
    assert fitting(alike) == list(range(9))
    assert alike.fits.size == 64


def test_without_a_change_nobody_is_asked(alike, snapshot, node_reader, usage_reader):
    alike.refresh(snapshot)
    assert (len(node_reader.seen), len(usage_reader.seen)) == (1, 1)


def test_a_pod_s_coming_concerns_those_who_read_usage_and_its_row_alone(
    alike, snapshot, node_reader, usage_reader
):
    snapshot.add_pod(3, make_pod("web"))
    alike.refresh(snapshot)
    assert (node_reader.seen[1:], usage_reader.seen[1:]) == ([], [[3]])
    assert fitting(alike) == [0, 1, 2, 4, 5, 6, 7, 8]
    assert alike.raw[usage_reader.name][3] == 1


def test_a_change_of_a_node_concerns_everybody(alike, snapshot, node_reader, usage_reader):
    snapshot.set_node(make_node("n5", unschedulable=True))
    alike.refresh(snapshot)
    assert (node_reader.seen[1:], usage_reader.seen[1:]) == ([[5]], [[5]])
    assert fitting(alike) == [0, 1, 2, 3, 4, 6, 7, 8]


def test_a_node_that_is_gone_does_not_fit(alike, snapshot):
    snapshot.drop_node("n2")
    alike.refresh(snapshot)
    assert 2 not in fitting(alike)


def test_both_kinds_of_change_at_once(alike, snapshot):
    snapshot.set_node(make_node("n5", unschedulable=True))
    pod = make_pod("web")
    snapshot.add_pod(5, pod)
    alike.refresh(snapshot)
    snapshot.set_node(make_node("n5"))
    alike.refresh(snapshot)
    assert 5 not in fitting(alike)
    snapshot.remove_pod(5, pod)
    alike.refresh(snapshot)
    assert 5 in fitting(alike)


def test_after_many_changes_all_rows_are_asked_about(alike, snapshot, usage_reader):
    """More than a quarter of the table, nodes and usage together."""
    for row in range(9):
        snapshot.add_pod(row, make_pod(f"p{row}"))
        snapshot.set_node(make_node(f"n{row}", unschedulable=True))
    alike.refresh(snapshot)
    assert len(usage_reader.seen[-1]) == snapshot.capacity
    assert fitting(alike) == []


def test_it_grows_with_the_snapshot(alike, snapshot):
    for number in range(9, 70):
        snapshot.set_node(make_node(f"n{number}"))
    alike.refresh(snapshot)
    assert fitting(alike) == list(range(70))


# -- the cache -------------------------------------------------------------------------------------


def test_an_entry_is_brought_up_to_date_when_it_is_asked_for(alike, snapshot):
    cache, spec = AlikeCache(), make_spec()
    cache.put(spec, alike)
    snapshot.add_pod(3, make_pod("web"))
    assert cache.get(spec, snapshot) is alike
    assert 3 not in fitting(alike)


def test_templates_that_ask_the_same_of_nodes_are_alike_whatever_they_ask_of_other_pods(alike, snapshot):
    cache = AlikeCache()
    cache.put(make_spec(cpu=1, node_selector={"a": "b"}), alike)
    spread = (SpreadConstraint("zone", selector=LabelSelector()),)
    affinity = PodAffinity(required=(PodAffinityTerm("zone"),))
    twin = make_spec(cpu=1, node_selector={"a": "b"}, spread=spread, pod_affinity=affinity)
    assert cache.get(twin, snapshot) is alike


@pytest.mark.parametrize(
    "fields",
    [
        {"cpu": 2},
        {"node_selector": {"a": "c"}},
        {"tolerations": (Toleration("a"),)},
        {"ports": [80]},
        {"images": ("a",)},
        {"priority": 1},
    ],
)
def test_other_templates_are_not_alike(alike, snapshot, fields):
    cache = AlikeCache()
    cache.put(make_spec(cpu=1, node_selector={"a": "b"}), alike)
    assert cache.get(make_spec(**{"cpu": 1, "node_selector": {"a": "b"}, **fields}), snapshot) is None


def test_the_longest_unused_entries_make_room(alike, snapshot, monkeypatch):
    monkeypatch.setattr(AlikeCache, "LIMIT", 2 * alike.nbytes)
    cache, specs = AlikeCache(), [make_spec(cpu=cpu) for cpu in range(3)]
    cache.put(specs[0], alike)
    cache.put(specs[1], alike)
    cache.get(specs[0], snapshot)
    cache.put(specs[2], alike)
    assert [cache.get(spec, snapshot) is not None for spec in specs] == [True, False, True]


def test_one_entry_is_kept_however_large(alike, snapshot, monkeypatch):
    monkeypatch.setattr(AlikeCache, "LIMIT", 1)
    cache, specs = AlikeCache(), [make_spec(cpu=cpu) for cpu in range(2)]
    for spec in specs:
        cache.put(spec, alike)
    assert [cache.get(spec, snapshot) is not None for spec in specs] == [False, True]


def test_growth_counts_against_the_limit(alike, snapshot, monkeypatch):
    monkeypatch.setattr(AlikeCache, "LIMIT", 2 * alike.nbytes)
    cache, specs = AlikeCache(), [make_spec(cpu=cpu) for cpu in range(2)]
    cache.put(specs[0], Alike(PreFiltered(), [], [], snapshot))
    cache.put(specs[1], alike)
    for number in range(9, 200):
        snapshot.set_node(make_node(f"n{number}"))
    assert cache.get(specs[1], snapshot) is alike
    assert cache.get(specs[0], snapshot) is None


def test_runners_that_share_a_cache_have_entries_of_their_own(alike, snapshot):
    cache, spec = AlikeCache(), make_spec()
    cache.put(spec, alike, 1)
    assert cache.get(spec, snapshot, 1) is alike
    assert cache.get(spec, snapshot, 2) is None
    assert cache.get(spec, snapshot) is None
