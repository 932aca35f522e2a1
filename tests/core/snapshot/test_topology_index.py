"""Things by where they can be reached: never one too few, and few too many."""

from hypothesis import given
from hypothesis import strategies as st

from moorage.core.model.selector import LabelSelector, Operator, Requirement
from moorage.core.snapshot.topology_index import TopologyIndex
from tests.kit.strategies import labels, requirements


def host(*names):
    return (Requirement("host", Operator.IN, names),)


def test_a_thing_is_found_under_the_label_it_asks_for():
    index = TopologyIndex()
    for number in range(100):
        index.put(f"v{number}", [host(f"n{number}")])
    assert list(index.near({"host": "n7"})) == ["v7"]
    assert list(index.near({"host": "elsewhere"})) == []
    assert list(index.near({})) == []
    assert index.keys == {"host"}


def test_alternatives_and_what_is_everywhere():
    index = TopologyIndex()
    index.put("both", [host("a"), (Requirement("zone", Operator.IN, ("z",)),)])
    index.put("all", None)
    index.put("none", [])
    assert set(index.near({"host": "a", "zone": "z"})) == {"both"}
    assert set(index.near({"zone": "z"})) == {"both"}
    assert list(index.everywhere) == ["all"]
    assert set(index) == {"both", "all", "none"}
    assert len(index) == 3


def test_what_has_no_label_to_go_by_is_always_near():
    index = TopologyIndex()
    index.put("odd", [(Requirement("gone", Operator.DOES_NOT_EXIST),)])
    index.put("field", [()])
    assert set(index.near({})) == {"odd", "field"}


def test_dropped_things_leave_nothing_behind():
    index = TopologyIndex()
    index.put("v", [host("a", "b"), (Requirement("zone", Operator.NOT_IN, ("z",)),)])
    index.put("v", [host("a", "a")])
    assert list(index.near({"host": "b"})) == []
    index.drop("v")
    index.drop("v")
    assert vars(index) == vars(TopologyIndex())


@given(
    st.dictionaries(
        st.sampled_from("abcd"),
        st.one_of(st.none(), st.lists(st.lists(requirements(), max_size=2).map(tuple), max_size=2)),
    ),
    st.lists(st.sampled_from("abcd"), max_size=2),
    labels,
)
def test_nothing_that_can_be_reached_is_missed(things, dropped, node):
    index = TopologyIndex()
    for name, alternatives in things.items():
        index.put(name, None)
        index.put(name, alternatives)
    for name in dropped:
        index.drop(name)
        things.pop(name, None)
    near = {*index.near(node), *index.everywhere}
    for name, alternatives in things.items():
        if alternatives is None or any(LabelSelector(term).matches(node) for term in alternatives):
            assert name in near
    read = {r.key for alternatives in things.values() for term in alternatives or () for r in term}
    assert index.keys == read
