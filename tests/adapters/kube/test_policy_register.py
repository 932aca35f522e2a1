"""What the register makes of events and lists, in any order."""

from typing import Any

import pytest

from moorage.adapters.kube.policy_kinds import CLUSTER_SCHEDULING_POLICY, SCHEDULING_POLICY
from moorage.adapters.kube.policy_register import KnownPolicy, PolicyRegister
from moorage.core.model.events import PolicyApplied, PolicyGone
from moorage.core.model.policy import Mode, Policy, PolicyRef, Selection
from tests.kit.fakes import FakeClock


def raw(name="p", generation=1, *, uid="", namespace="", version=0, deleting=False, **spec) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": name, "uid": uid or f"uid-{name}", "generation": generation}
    meta["resourceVersion"] = str(version or generation)
    if namespace:
        meta["namespace"] = namespace
    if deleting:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {"metadata": meta, "spec": spec}


class Rig:
    """A register, and what it has told."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.events: list[str] = []
        self.changed: list[str] = []
        self.malformed: list[str] = []
        self.wanted = 0
        self.register = PolicyRegister(
            self.read,
            self.submit,
            self.clock,
            self,
            on_change=lambda ref: self.changed.append(ref.key),
            on_expressions=self.want,
        )

    def read(self, obj):
        spec, meta = obj["spec"], obj["metadata"]
        if "bug" in spec:
            raise RuntimeError("a bug")
        if "bad" in spec:
            return ((spec["bad"], "is bad"),)
        return Policy(
            PolicyRef(meta.get("namespace", ""), meta["name"]),
            meta["uid"],
            meta["generation"],
            mode=spec.get("mode", Mode.ENFORCE),
            selection=Selection(expression=spec.get("expression", "")),
        )

    def submit(self, event: PolicyApplied | PolicyGone) -> None:
        if isinstance(event, PolicyApplied):
            self.events.append(f"+{event.policy.ref.key}@{event.policy.generation}")
        else:
            self.events.append(f"-{event.ref.key}")

    def want(self) -> None:
        self.wanted += 1

    def object_malformed(self, resource: str) -> None:
        self.malformed.append(resource)

    def take(self) -> list[str]:
        events, self.events = self.events, []
        return events

    def known(self, name="p", namespace="") -> KnownPolicy:
        known = self.register.get(PolicyRef(namespace, name))
        assert known is not None
        return known


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_each_generation_is_handed_on_once(rig):
    rig.register.event(None, raw())
    rig.register.event("MODIFIED", raw(version=7))  # a status
    rig.register.event("MODIFIED", raw(generation=2, version=8))
    rig.register.event("MODIFIED", raw(generation=1, version=7))  # too late
    assert rig.take() == ["+p@1", "+p@2"]
    rig.register.event("DELETED", raw(generation=2, version=9))
    assert rig.take() == ["-p"]
    assert (len(rig.register), rig.register.get(PolicyRef("", "p"))) == (0, None)
    assert set(rig.changed) == {"p"}


def test_a_bad_generation_leaves_the_good_one_in_force(rig):
    rig.register.event("ADDED", raw())
    rig.register.event("MODIFIED", raw(generation=2, bad="spec.nodes"))
    known = rig.known()
    assert (known.generation, known.problems) == (2, (("spec.nodes", "is bad"),))
    assert known.in_force is not None
    assert known.in_force.generation == 1
    assert rig.take() == ["+p@1"]
    rig.register.event("MODIFIED", raw(generation=3))
    assert (rig.take(), rig.known().problems) == (["+p@3"], ())
    rig.register.event("MODIFIED", raw(generation=4, bad="spec"))
    rig.register.event("DELETED", raw(generation=4))
    assert rig.take() == ["-p"], "what was in force is undone"


def test_what_was_never_in_force_is_not_undone(rig):
    rig.register.event("ADDED", raw(bad="spec"))
    rig.register.event("DELETED", raw())
    assert rig.take() == []


def test_a_bug_in_reading_is_a_problem_of_the_policy(rig):
    rig.register.event("ADDED", raw(bug=True))
    assert rig.known().problems == (("", "cannot be read: RuntimeError('a bug')"),)


@pytest.mark.parametrize(
    "obj", [{}, {"metadata": {}}, {"metadata": None}, {"metadata": {"name": "p"}}, None, 7]
)
@pytest.mark.parametrize("kind", [None, "ADDED", "DELETED"])
def test_nonsense_is_counted(rig, obj, kind):
    rig.register.event(kind, obj)
    assert (rig.malformed, rig.take()) == (["policies"], [])


def test_a_name_used_again_is_another_policy(rig):
    rig.register.event("ADDED", raw(generation=5))
    rig.register.event("ADDED", raw(uid="other"))
    assert rig.take() == ["+p@5", "-p", "+p@1"]
    rig.register.event("DELETED", raw(generation=5))  # of the one before
    assert rig.take() == []
    assert rig.known().uid == "other"


def test_a_policy_that_is_being_deleted_is_out_of_force(rig):
    rig.register.event("ADDED", raw())
    rig.register.event("MODIFIED", raw(version=2, deleting=True))
    rig.register.event("MODIFIED", raw(generation=2, version=3, deleting=True))
    rig.register.event("DELETED", raw(version=4))
    assert rig.take() == ["+p@1", "-p"]


def test_what_a_list_does_not_show_is_gone(rig):
    for name in "ab":
        rig.register.event("ADDED", raw(name))
    rig.register.event("ADDED", raw("a", namespace="n", uid="namespaced"))
    rig.clock.time += 1
    listed_at = rig.clock.time
    rig.clock.time += 1
    rig.register.event("ADDED", raw("late"))  # after the list was asked for: it may be older
    rig.take()
    rig.register.listed(CLUSTER_SCHEDULING_POLICY, {"uid-b", "uid-c"}, listed_at)
    assert rig.take() == ["-a"]
    rig.register.listed(SCHEDULING_POLICY, [], listed_at)
    assert rig.take() == ["-n/a"]
    assert {known.ref.name for known in rig.register} == {"b", "late"}


def test_a_list_from_before_brings_nothing_back(rig):
    rig.register.event("ADDED", raw())
    rig.register.event("DELETED", raw())
    rig.take()
    rig.register.event(None, raw())
    rig.register.listed(CLUSTER_SCHEDULING_POLICY, {"uid-p"}, rig.clock.time)
    assert (rig.take(), len(rig.register)) == ([], 0)
    rig.clock.time += 1000
    rig.register.listed(CLUSTER_SCHEDULING_POLICY, [], rig.clock.time)
    assert not rig.register._gone, "and it is not remembered for ever"


def test_the_status_is_that_of_the_newest_version(rig):
    def with_status(version, **status):
        return {**raw(version=version), "status": status}

    rig.register.event("ADDED", with_status(5, a=1))
    rig.register.written(PolicyRef("", "p"), with_status(9, a=3))
    rig.register.event("MODIFIED", with_status(7, a=2))  # our write of before
    assert rig.known().status == {"a": 3}
    rig.register.event("MODIFIED", with_status(11, a=4))  # somebody else's
    assert rig.known().status == {"a": 4}
    rig.register.event("MODIFIED", {**raw(version=12), "status": "nonsense"})
    assert rig.known().status == {}
    rig.register.written(
        PolicyRef("", "p"), {**with_status(20, a=5), "metadata": raw(uid="other")["metadata"]}
    )
    rig.register.written(PolicyRef("", "unknown"), with_status(20))
    assert rig.known().status == {}


# -- expressions over pods -------------------------------------------------------------------------


def test_a_policy_waits_until_pods_are_judged_by_its_expression(rig):
    rig.register.event("ADDED", raw())
    rig.register.event("MODIFIED", raw(generation=2, expression="x"))
    assert rig.take() == ["+p@1"], "the generation before stays in force meanwhile"
    assert (rig.register.expressions(), rig.wanted > 0) == ({"x"}, True)
    rig.register.judged(frozenset("y"))
    assert rig.take() == []
    rig.register.judged(frozenset("xy"))
    assert rig.take() == ["+p@2"]
    rig.register.event("ADDED", raw("q", expression="x"))
    assert rig.take() == ["+q@1"], "known already"


def test_expressions_in_force_are_needed_until_others_are(rig):
    rig.register.event("ADDED", raw(expression="x"))
    rig.register.judged(frozenset("x"))
    rig.register.event("MODIFIED", raw(generation=2, expression="y"))
    assert rig.register.expressions() == {"x", "y"}
    wanted = rig.wanted
    rig.register.judged(frozenset("xy"))
    assert rig.register.expressions() == {"y"}
    assert rig.wanted > wanted, "one is needed no more"
    rig.register.event("DELETED", raw(generation=2))
    assert rig.register.expressions() == set()


def test_a_policy_that_waits_can_change_or_go(rig):
    rig.register.event("ADDED", raw(expression="x"))
    rig.register.event("MODIFIED", raw(generation=2))
    assert rig.take() == ["+p@2"]
    rig.register.judged(frozenset("x"))
    assert rig.take() == []
    rig.register.event("MODIFIED", raw(generation=3, expression="z"))
    rig.register.event("DELETED", raw(generation=3))
    rig.register.judged(frozenset("z"))
    assert rig.take() == ["-p"]


def test_the_last_good_generation_may_be_one_that_waits(rig):
    rig.register.event("ADDED", raw(expression="x"))
    rig.register.event("MODIFIED", raw(generation=2, bad="spec"))
    known = rig.known()
    assert known.newest is not None
    assert known.newest.generation == 1
    rig.register.judged(frozenset("x"))
    assert rig.take() == ["+p@1"]
    assert known.problems


def test_a_disabled_policy_asks_no_pod(rig):
    rig.register.event("ADDED", raw(expression="x", mode=Mode.DISABLED))
    assert (rig.take(), rig.register.expressions()) == (["+p@1"], set())
