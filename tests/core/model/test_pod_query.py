"""Queries are values: equal ones are one key."""

from moorage.core.model.pod_query import PodQuery
from moorage.core.model.selector import LabelSelector
from tests.kit.models import label_in


def query(*namespaces, app="web", terminating=True):
    return PodQuery(frozenset(namespaces) or None, LabelSelector((label_in("app", app),)), terminating)


def test_equal_queries_are_one_key():
    assert query("a", "b") == query("b", "a")
    assert len({query("a", "b"), query("b", "a")}) == 1


def test_each_part_tells_queries_apart():
    assert len({query("a"), query("b"), query(), query("a", app="db"), query("a", terminating=False)}) == 5


def test_which_pods_it_means():
    assert query().matches("anywhere", {"app": "web"})
    assert query("a").matches("a", {"app": "web", "other": "label"})
    assert not query("a").matches("b", {"app": "web"})
    assert not query("a").matches("a", {"app": "db"})
    assert not PodQuery(frozenset(), LabelSelector()).matches("a", {})
