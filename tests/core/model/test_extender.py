"""Which pods concern an extender."""

from moorage.core.model.extender import Extender
from tests.kit.models import make_pod


def test_all_pods_unless_it_manages_resources_and_then_those_that_name_one():
    greedy, modest, plain = (
        make_pod("greedy", more={"a.b/c": 2}),
        make_pod("modest", more={"a.b/c": 0}),
        make_pod("plain", cpu=100),
    )
    assert all(Extender("http://x").concerns(pod) for pod in (greedy, modest, plain))
    one = Extender("http://x", managed=frozenset({"a.b/c", "d.e/f"}))
    assert [one.concerns(pod) for pod in (greedy, modest, plain)] == [True, True, False]
