"""The book gives the same answers as a look at every policy, however it remembers them."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from moorage.core.model.pod import OwnerRef
from moorage.core.model.policy import LimitRule, Mode, PolicyRef, Scoring
from moorage.core.policy.book import UNTOUCHED, PolicyBook
from moorage.core.policy.canary import owner_key, takes_part
from moorage.core.policy.matching import selects
from moorage.core.policy.merge import merge
from tests.kit.models import make_pod
from tests.kit.policy_builders import make_policy, window


def book_of(*policies, namespaces=None):
    namespaces = {} if namespaces is None else namespaces
    book = PolicyBook(lambda name: namespaces.get(name, {}))
    for policy in policies:
        book.apply(policy)
    return book


def keys(book, pod):
    return [ref.key for ref in book.selects(pod)]


def test_an_empty_book_says_nothing():
    assert book_of().shaping(make_pod("a")) is UNTOUCHED


def test_enforced_and_audited_policies_are_kept_apart():
    enforced, audited = make_policy("e"), make_policy("a", mode=Mode.AUDIT, precedence=5)
    shaping = book_of(enforced, audited, make_policy("d", mode=Mode.DISABLED)).shaping(make_pod("x"))
    assert shaping.merged.policies == (enforced,)
    assert shaping.audited == (audited,)
    assert [ref.key for ref in shaping.refs] == ["a", "e"]


def test_pods_alike_share_one_answer():
    book = book_of(make_policy("p", labels={"tier": "batch"}))
    one, other = (make_pod(f"x{n}", labels={"tier": "batch", "n": str(n)}) for n in range(2))
    assert book.shaping(one) is book.shaping(other)
    assert book.shaping(make_pod("y")) is UNTOUCHED


def test_a_tenant_reaches_no_pod_elsewhere():
    book = book_of(make_policy("own", namespace="x"))
    assert keys(book, make_pod("a", namespace="x")) == ["x/own"]
    assert keys(book, make_pod("a", uid="b", namespace="y")) == []


def test_a_namespace_that_changes_its_labels():
    namespaces = {"x": {"team": "web"}}
    book = book_of(make_policy("p", namespace_labels={"team": "data"}), namespaces=namespaces)
    pod = make_pod("a", namespace="x")
    assert keys(book, pod) == []
    namespaces["x"] = {"team": "data"}
    book.namespace_changed("x")
    assert keys(book, pod) == ["p"]


def test_a_pod_that_changes_is_looked_at_again():
    book = book_of(make_policy("p", labels={"tier": "batch"}), make_policy("q", expression="e"))
    pod = make_pod("a")
    assert keys(book, pod) == []
    assert keys(book, replace(pod, labels={"tier": "batch"})) == ["p"]
    assert keys(book, replace(pod, holds=frozenset({"e"}))) == ["q"]
    assert keys(book, pod) == []


def test_a_canary_takes_owners_whole():
    half = make_policy("p", uid="u", canary_percent=50)
    book = book_of(half)
    for number in range(40):
        owner = OwnerRef("Job", f"job-{number}")
        pods = [make_pod(f"x{n}", uid=f"{number}-{n}", owner=owner) for n in range(2)]
        expected = ["p"] if takes_part(half, owner_key(pods[0])) else []
        assert [keys(book, pod) for pod in pods] == [expected, expected]


def test_a_change_keeps_the_answers_it_does_not_touch():
    batch, web = make_policy("batch", labels={"tier": "batch"}), make_policy("web", labels={"tier": "web"})
    book = book_of(batch, web)
    pods = [make_pod(tier, labels={"tier": tier}) for tier in ("batch", "web")]
    before = [book.shaping(pod).merged for pod in pods]
    book.apply(make_policy("batch", labels={"tier": "batch"}, precedence=7))
    after = [book.shaping(pod).merged for pod in pods]
    assert after[0] is not before[0]
    assert after[1] is before[1]
    book.remove(PolicyRef("", "batch"))
    assert book.shaping(pods[0]) is UNTOUCHED
    assert book.shaping(pods[1]).merged is before[1]


def test_the_same_generation_again_is_no_change():
    policy = make_policy("p", uid="u", generation=3)
    book = book_of(policy)
    again = make_policy("p", uid="u", generation=3)
    assert book.apply(again) is again
    assert book.get(policy.ref) is policy
    assert book.apply(make_policy("p", uid="u", generation=4)) is policy


def test_without_a_uid_every_word_is_new():
    policy = make_policy("p")
    assert book_of(policy).apply(make_policy("p")) is policy


def test_removing_what_is_not_there():
    assert book_of().remove(PolicyRef("", "p")) is None


def test_one_policy_more():
    limits = [(LimitRule("host", number),) for number in range(2)]
    enforced = make_policy("e", limits=limits[0])
    audited = make_policy("a", mode=Mode.AUDIT, precedence=9, limits=limits[1])
    book = book_of(enforced, audited)
    merged = book.shaping(make_pod("x")).merged
    both = book.together(merged, audited)
    assert both.policies == (audited, enforced)
    assert both.limits == ((audited.ref, limits[1][0]), (enforced.ref, limits[0][0]))
    assert book.together(merged, audited) is both
    book.remove(audited.ref)
    assert book.together(merged, audited) is not both


def test_a_calendar_goes_with_its_policy():
    first, second = (make_policy("p", windows=(window("", start, "12:00"),)) for start in ("01:00", "02:00"))
    book = book_of(first)
    calendar = book.calendar_of(first)
    assert book.calendar_of(first) is calendar
    book.apply(second)
    assert not book.calendar_of(second).admits(3600.0)
    assert calendar.admits(3600.0)


# -- against a look at every policy ---------------------------------------------------------------

NAMES = ("p", "q", "r")
POLICIES = st.builds(
    make_policy,
    st.sampled_from(NAMES),
    namespace=st.sampled_from(("", "", "x")),
    labels=st.dictionaries(st.sampled_from(("a", "b")), st.sampled_from(("1", "2")), max_size=2),
    namespace_labels=st.sampled_from((None, None, {"team": "t"}, {"team": "u"})),
    priority_classes=st.sampled_from(((), ("low",))),
    expression=st.sampled_from(("", "", "e")),
    mode=st.sampled_from((Mode.ENFORCE, Mode.ENFORCE, Mode.AUDIT, Mode.DISABLED)),
    canary_percent=st.sampled_from((None, None, 50)),
    precedence=st.integers(0, 2),
)
PODS = st.builds(
    make_pod,
    st.sampled_from(("one", "two")),
    namespace=st.sampled_from(("x", "y")),
    labels=st.dictionaries(st.sampled_from(("a", "b", "c")), st.sampled_from(("1", "2", "3")), max_size=2),
    priority_class=st.sampled_from(("", "low")),
    holds=st.sampled_from((frozenset(), frozenset({"e"}))),
    owner=st.sampled_from((None, OwnerRef("Job", "j1"), OwnerRef("Job", "j2"))),
)
CHANGES = st.one_of(
    POLICIES,
    PODS,
    st.builds(PolicyRef, st.sampled_from(("", "x")), st.sampled_from(NAMES)),
    st.tuples(st.sampled_from(("x", "y")), st.sampled_from(({}, {"team": "t"}, {"team": "u"}))),
)


@given(st.lists(CHANGES, max_size=20))
def test_memory_makes_no_difference(changes):
    namespaces: dict = {}
    policies: dict = {}
    asked: list = []
    book = PolicyBook(lambda name: namespaces.get(name, {}))
    for change in changes:
        if isinstance(change, tuple):
            namespaces[change[0]] = change[1]
            book.namespace_changed(change[0])
        elif isinstance(change, PolicyRef):
            assert book.remove(change) is policies.pop(change, None)
        elif hasattr(change, "selection"):
            assert book.apply(change) is policies.get(change.ref)
            policies[change.ref] = change
        else:
            asked.append(change)
        for pod in asked:
            labels = namespaces.get(pod.namespace, {})
            chosen = [
                p for p in policies.values() if selects(p, pod, labels) and takes_part(p, owner_key(pod))
            ]
            shaping = book.shaping(pod)
            expected = merge(p for p in chosen if p.mode is Mode.ENFORCE)
            assert shaping.merged.policies == expected.policies
            assert {p.ref for p in shaping.audited} == {p.ref for p in chosen if p.mode is Mode.AUDIT}
            assert set(book.selects(pod)) == {p.ref for p in chosen}
            assert all(book.is_of(p, pod) == (p in chosen) for p in policies.values())


def test_fields_that_are_lost_are_those_of_pods_that_were_asked_about():
    scoring = Scoring(weights={"ImageLocality": 0, "NodeAffinity": 1})
    winner, loser = make_policy("w", precedence=1, scoring=scoring), make_policy("p", scoring=scoring)
    book = book_of(winner, loser)
    assert book.lost(loser.ref) == ()
    book.shaping(make_pod("x"))
    fields = [(lost.field, lost.winner) for lost in book.lost(loser.ref)]
    assert fields == [
        ("scoring.weights.ImageLocality", winner.ref),
        ("scoring.weights.NodeAffinity", winner.ref),
    ]
    assert book.lost(winner.ref) == ()
    book.remove(winner.ref)
    assert book.lost(loser.ref) == ()


def test_fields_that_are_lost_are_in_order_of_name_whoever_wins():
    weights = {"ImageLocality": "z", "NodeAffinity": "a"}
    winners = [
        make_policy(name, precedence=1, scoring=Scoring(weights={plugin: 1}))
        for plugin, name in weights.items()
    ]
    loser = make_policy("p", scoring=Scoring(weights=dict.fromkeys(weights, 5)))
    book = book_of(*winners, loser)
    book.shaping(make_pod("x"))
    assert [(lost.field, lost.winner.name) for lost in book.lost(loser.ref)] == [
        ("scoring.weights.ImageLocality", "z"),
        ("scoring.weights.NodeAffinity", "a"),
    ]


def test_what_is_remembered_of_a_pod_ends_with_what_it_was_worked_out_from():
    half = make_policy("half", uid="u", canary_percent=50)
    book = book_of(half, make_policy("batch", labels={"tier": "batch"}), make_policy("e", expression="e"))
    owners = [OwnerRef("Job", f"job-{number}") for number in range(40)]
    pod = make_pod("a", owner=owners[0])
    (inside, outside) = (
        next(o for o in owners if takes_part(half, owner_key(replace(pod, owner=o))) is wanted)
        for wanted in (True, False)
    )

    def names(**changes):
        return [ref.name for ref in book.shaping(replace(pod, **changes)).refs]

    one_change_each = (
        ({"owner": inside}, ["half"]),
        ({"owner": outside, "labels": {"tier": "batch"}}, ["batch"]),
        ({"owner": outside, "holds": frozenset({"e"})}, ["e"]),
    )
    for changes, selecting in one_change_each:
        assert names(owner=outside) == []
        assert names(**changes) == selecting
    assert names(owner=outside) == []


def test_labels_of_a_namespace_end_what_is_remembered_of_its_pods():
    namespaces = {"x": {"team": "data"}}
    book = book_of(make_policy("p", namespace_labels={"team": "data"}), namespaces=namespaces)
    pod = make_pod("a", namespace="x")
    assert [ref.name for ref in book.shaping(pod).refs] == ["p"]
    namespaces["x"] = {}
    book.namespace_changed("x")
    assert book.shaping(pod).refs == ()


def test_a_canary_holds_back_its_own_policy_only():
    half = make_policy("half", uid="u", canary_percent=50)
    book = book_of(half, make_policy("all"))
    pods = [make_pod(f"x{n}", uid=f"uid-{n}", owner=OwnerRef("Job", f"job-{n}")) for n in range(40)]
    taking_part = [takes_part(half, owner_key(pod)) for pod in pods]
    assert [keys(book, pod) for pod in pods] == [["all", "half"] if part else ["all"] for part in taking_part]
    assert [book.is_of(half, pod) for pod in pods] == taking_part
    assert set(taking_part) == {True, False}
