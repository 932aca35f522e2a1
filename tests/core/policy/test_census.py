"""Counting pods and reasons as they come and go."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from moorage.core.model.policy import PolicyRef
from moorage.core.model.policy_report import BlockedPods
from moorage.core.policy.census import Census

P, Q = PolicyRef("", "p"), PolicyRef("x", "q")
FULL, HOT = ("Fit", "full"), ("Load", "hot")


def test_pods_that_no_policy_selects_leave_no_trace():
    census = Census()
    census.enter("a", ())
    census.refuse("a", [FULL])
    census.leave("a")
    assert len(census) == 0
    assert census.refs_of("a") == ()


def test_a_pod_counts_for_each_policy_once():
    census = Census()
    census.enter("a", (P, Q))
    census.enter("a", (P, Q))
    census.enter("b", (Q,))
    assert (census.pending(P), census.pending(Q)) == (1, 2)


def test_other_policies_take_the_reasons_over():
    census = Census()
    census.enter("a", (P,))
    census.refuse("a", [FULL])
    census.enter("a", (Q,))
    assert census.blocked(P, 5) == ()
    assert census.blocked(Q, 5) == (BlockedPods("Fit", "full", 1),)


def test_a_new_look_takes_the_place_of_the_last():
    census = Census()
    census.enter("a", (P,))
    census.refuse("a", [FULL, FULL, HOT])
    census.refuse("a", [HOT])
    assert census.blocked(P, 5) == (BlockedPods("Load", "hot", 1),)
    census.refuse("a")
    assert census.blocked(P, 5) == ()
    assert census.pending(P) == 1


def test_the_most_common_reasons_come_first_and_a_tie_in_order_of_name():
    census = Census()
    for uid, reasons in {"a": [HOT], "b": [HOT, FULL], "c": [("Spread", "skew")]}.items():
        census.enter(uid, (P,))
        census.refuse(uid, reasons)
    found = [(b.plugin, b.pods) for b in census.blocked(P, 5)]
    assert found == [("Load", 2), ("Fit", 1), ("Spread", 1)]
    assert [(b.plugin, b.pods) for b in census.blocked(P, 1)] == [("Load", 2)]


STEPS = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.sampled_from((None, (), (P,), (Q,), (P, Q))),
        st.lists(st.sampled_from((FULL, HOT)), max_size=2),
    ),
    max_size=20,
)


@given(STEPS)
def test_counts_are_those_of_a_walk(steps):
    census = Census()
    truth: dict = {}
    for uid, refs, reasons in steps:
        if refs is None:
            census.leave(uid)
            truth.pop(uid, None)
            continue
        census.enter(uid, refs)
        census.refuse(uid, reasons)
        truth[uid] = (refs, set(reasons))
    for ref in (P, Q):
        assert census.pending(ref) == sum(ref in refs for refs, _ in truth.values())
        reasons = Counter(reason for refs, found in truth.values() if ref in refs for reason in found)
        assert {(b.plugin, b.reason): b.pods for b in census.blocked(ref, 9)} == reasons
    assert len(census) == sum(bool(refs) for refs, _ in truth.values())
