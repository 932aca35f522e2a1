"""Tentative placements are kept as a whole or leave no trace."""

import pytest

from moorage.core.cache.cache import Cache
from moorage.core.cache.transaction import Transaction
from moorage.core.snapshot.snapshot import Snapshot
from tests.kit.models import make_node, make_pod
from tests.kit.strategies import columns_of


@pytest.fixture
def cache():
    """Node a with pod old on it, and node b."""
    cache = Cache(Snapshot())
    cache.apply_node(make_node("a"))
    cache.apply_node(make_node("b"))
    cache.add(make_pod("old", cpu=500, node="a"))
    return cache


def test_commit_keeps_the_placements_in_order(cache):
    with Transaction(cache) as transaction:
        first = transaction.place(make_pod("one"), "a")
        second = transaction.place(make_pod("two"), "b")
        assert transaction.placements == (first, second)
        assert transaction.commit() == (first, second)
        assert len(transaction.placements) == 0
    assert cache.assumed_count == 2


def test_without_commit_nothing_stays(cache):
    before = columns_of(cache.snapshot)
    with Transaction(cache) as transaction:
        transaction.place(make_pod("one", cpu=100), "a")
        transaction.evict("uid-old")
        assert columns_of(cache.snapshot)["a"]["requested"] == {"cpu": 100}
    assert columns_of(cache.snapshot) == before
    assert cache.assumed_count == 0


def test_an_exception_undoes_everything_and_goes_on(cache):
    before = columns_of(cache.snapshot)

    def fail():
        with Transaction(cache) as transaction:
            transaction.place(make_pod("one"), "a")
            raise RuntimeError("boom")

    with pytest.raises(RuntimeError, match="boom"):
        fail()
    assert columns_of(cache.snapshot) == before


def test_a_pod_may_be_placed_and_evicted_again_in_one_go(cache):
    with Transaction(cache) as transaction:
        transaction.place(make_pod("one", cpu=100), "a")
        transaction.evict("uid-one")
        transaction.place(make_pod("one", cpu=100), "b")
        assert columns_of(cache.snapshot)["b"]["requested"] == {"cpu": 100}
    assert cache.state("uid-one") is None


def test_evictions_cannot_be_committed(cache):
    with Transaction(cache) as transaction:
        transaction.place(make_pod("one"), "a")
        transaction.evict("uid-old")
        with pytest.raises(ValueError, match="evictions cannot be committed; they happen in the API server"):
            transaction.commit()
    assert cache.assumed_count == 0
    assert [pod.name for pod in cache.pods_on("a")] == ["old"]


def test_what_cannot_be_done_is_not_half_done(cache):
    with Transaction(cache) as transaction:
        with pytest.raises(ValueError, match="already takes room"):
            transaction.place(make_pod("old"), "b")
        with pytest.raises(LookupError, match="no pod with uid unknown takes room"):
            transaction.evict("unknown")
    assert [pod.name for pod in cache.pods_on("a")] == ["old"]
