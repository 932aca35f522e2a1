"""Keeping one of equal values, within bounds."""

from hypothesis import given
from hypothesis import strategies as st

from moorage.adapters.kube.sharing import Recent, Sharing


@given(st.integers(1, 5), st.lists(st.integers(0, 20), max_size=60))
def test_the_most_recent_are_kept_and_never_more_than_twice_the_capacity(capacity, keys):
    recent: Recent[int, str] = Recent(capacity)
    for number, key in enumerate(keys):
        if recent.get(key) is None:
            recent.put(key, f"value {key}")
        assert len(recent) <= 2 * capacity
        last_used = list(dict.fromkeys(reversed(keys[: number + 1])))[:capacity]
        assert [recent.get(k) for k in reversed(last_used)] == [f"value {k}" for k in reversed(last_used)]


def test_equal_values_become_one_object():
    sharing = Sharing(10)
    first = sharing.value(("a", 1000))
    assert sharing.value(("a", 500 + 500)) is first


def test_equal_values_of_different_types_stay_apart():
    sharing = Sharing(10)
    assert sharing.value(1) is not True
    assert sharing.value(True) is True


def test_what_is_under_a_key_is_made_once():
    sharing = Sharing(10)
    made = sharing.under("k", lambda: {"a": 1})
    assert sharing.under("k", lambda: {"a": 2}) is made
