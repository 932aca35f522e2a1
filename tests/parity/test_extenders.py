"""Extenders of the configuration: Moorage and kube-scheduler's own code ask the same fake one, and decide the same."""

from collections.abc import Iterator
from typing import Any

import pytest

from moorage.cli.cases import decide_case
from tests.controlplane.build import BuildError
from tests.kit.extender import FakeExtender, Status, keep, names_of, rate
from tests.kit.manifests import node, pod
from tests.parity.build import find
from tests.parity.compare import compare
from tests.parity.oracle import Oracle
from tests.parity.sides import for_oracle

pytestmark = [pytest.mark.integration, pytest.mark.parity]

GPU = "example.com/gpu"


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    try:
        program = find()
    except BuildError as error:
        pytest.skip(str(error))
    with Oracle(program, workers=1) as oracle:
        yield oracle


def check(oracle: Oracle, fake: FakeExtender, *extenders: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Both answers, compared; gives ours."""
    case = {
        "id": 1,
        "objects": [node("a", cpu="4"), node("b", cpu="6"), node("c", cpu="8")],
        "pods": [pod("web", cpu="1", scheduler="default-scheduler")],
        "config": {"extenders": [{"urlPrefix": fake.url, "nodeCacheCapable": True} | e for e in extenders]},
    } | more
    ours = decide_case(case, allow_http=True)
    theirs = oracle.ask(for_oracle(case))
    assert compare(ours, theirs) == []
    return ours


FILTERS = {
    "all": keep("a", "b", "c"),
    "one": keep("b", failed={"a": "too green", "c": "too green"}),
    "none": keep(failed={"a": "too green", "b": "too red"}, final={"b": "far too red", "c": "gone"}),
    "without a word": keep("a"),
    "none without a word": keep(),
    "both": keep("a", failed={"a": "not really", "b": "no"}),
    "no names": lambda body: {"NodeNames": None, "FailedNodes": {"a": "x"}},
    "other case": lambda body: {"nodenames": ["c"], "failednodes": {"a": "x"}},
    "empty": lambda body: {},
}


@pytest.mark.parametrize("capable", [True, False], ids=["names", "nodes"])
@pytest.mark.parametrize("name", FILTERS)
def test_filter(oracle: Oracle, name: str, capable: bool) -> None:
    with FakeExtender(filter=FILTERS[name]) as fake:
        check(oracle, fake, {"filterVerb": "filter", "nodeCacheCapable": capable})


FAILURES = {
    "error": lambda body: {"Error": "I would rather not"},
    "unknown node": lambda body: {"NodeNames": ["nobody"]},
    "status": lambda body: Status(500, "oops"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_fails_the_attempt(oracle: Oracle, name: str) -> None:
    with FakeExtender(filter=FAILURES[name]) as fake:
        (result,) = check(oracle, fake, {"filterVerb": "filter"})["results"]
        assert result["error"]


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_of_an_ignorable_one_is_skipped(oracle: Oracle, name: str) -> None:
    with FakeExtender(odd=FAILURES[name], filter=keep("a", "b")) as fake:
        ignorable = {"filterVerb": "odd", "ignorable": True}
        (result,) = check(oracle, fake, ignorable, {"filterVerb": "filter"})["results"]
        assert result["feasible"] == ["a", "b"]


def test_ignorable_ones_are_asked_last_about_what_is_left(oracle: Oracle) -> None:
    with FakeExtender(last=keep("b"), first=keep("b", "c")) as fake:
        check(oracle, fake, {"filterVerb": "last", "ignorable": True}, {"filterVerb": "first"})
        assert {verb for verb, body in fake.asked if names_of(body) == ["b", "c"]} == {"last"}


PRIORITIES = {
    "plain": rate(a=10, b=1),
    "beyond": rate(a=1000, b=-7),
    "strangers": lambda body: [{"Host": "nobody", "Score": 5}, {"host": "c", "score": 3}],
    "twice": lambda body: [{"Host": "a", "Score": 5}, {"Host": "a", "Score": 3}],
    "null": lambda body: None,
    "nonsense": lambda body: {"Host": "a"},
    "float": lambda body: [{"Host": "a", "Score": 1.5}],
    "status": lambda body: Status(404),
}


@pytest.mark.parametrize("name", PRIORITIES)
def test_prioritize(oracle: Oracle, name: str) -> None:
    with FakeExtender(prioritize=PRIORITIES[name]) as fake:
        check(oracle, fake, {"prioritizeVerb": "prioritize", "weight": 3})


def test_several_prioritize_and_one_that_does_not(oracle: Oracle) -> None:
    with FakeExtender(one=rate(a=1), two=rate(b=2), filter=keep("a", "b", "c")) as fake:
        check(
            oracle,
            fake,
            {"prioritizeVerb": "one", "weight": 5},
            {"urlPrefix": fake.url + "/", "prioritizeVerb": "two", "weight": 2},
            {"urlPrefix": fake.url + "//", "filterVerb": "filter"},
        )


def test_a_pod_that_asks_for_none_of_its_resources_is_none_of_its_business(oracle: Oracle) -> None:
    managed = {"managedResources": [{"name": GPU, "ignoredByScheduler": True}]}
    plain, greedy = (pod(name, scheduler="default-scheduler") for name in ("plain", "greedy"))
    greedy["spec"]["containers"][0]["resources"] = {"limits": {GPU: "2"}, "requests": {GPU: "2"}}
    with FakeExtender(filter=keep("c")) as fake:
        results = check(oracle, fake, {"filterVerb": "filter", **managed}, pods=[plain, greedy])["results"]
        assert [result["feasible"] for result in results] == [["a", "b", "c"], ["c"]]


def test_a_promised_node_must_pass_as_well(oracle: Oracle) -> None:
    promised = pod("web", scheduler="default-scheduler") | {"status": {"nominatedNodeName": "a"}}
    with FakeExtender(filter=keep("b", "c")) as fake:
        (result,) = check(oracle, fake, {"filterVerb": "filter"}, pods=[promised])["results"]
        assert "nominatedNodeFits" not in result


def full(name: str) -> list[dict[str, Any]]:
    """A full node, and the pod that fills it."""
    victim = pod(f"on-{name}", cpu="2", scheduler="default-scheduler", nodeName=name, priority=1)
    return [node(name, cpu="2"), victim]


URGENT = pod("urgent", cpu="2", scheduler="default-scheduler", priority=100)
PREEMPTIONS = {
    "some": lambda body: {"NodeNameToMetaVictims": {"b": body["NodeNameToMetaVictims"]["b"]}},
    "none": lambda body: {"NodeNameToMetaVictims": {}},
    "no victims": lambda body: {"NodeNameToMetaVictims": {"b": {"Pods": []}}},
    "unknown victim": lambda body: {"NodeNameToMetaVictims": {"b": {"Pods": [{"UID": "who"}]}}},
    "more violations": lambda body: {
        "NodeNameToMetaVictims": {
            name: victims | {"NumPDBViolations": 0 if name == "c" else 4}
            for name, victims in body["NodeNameToMetaVictims"].items()
        }
    },
    "status": lambda body: Status(500),
}


@pytest.mark.parametrize("ignorable", [False, True], ids=["strict", "ignorable"])
@pytest.mark.parametrize("name", PREEMPTIONS)
def test_preempt(oracle: Oracle, name: str, ignorable: bool) -> None:
    objects = [obj for each in "abc" for obj in full(each)]
    with FakeExtender(preempt=PREEMPTIONS[name]) as fake:
        extender = {"preemptVerb": "preempt", "ignorable": ignorable}
        check(oracle, fake, extender, objects=objects, pods=[URGENT])
        assert fake.bodies("preempt")


def test_whole_victims_are_sent_to_an_extender_without_a_cache(oracle: Oracle) -> None:
    def only_b(body: dict[str, Any]) -> dict[str, Any]:
        (victim,) = body["NodeNameToVictims"]["b"]["Pods"]
        return {"NodeNameToMetaVictims": {"b": {"Pods": [{"UID": victim["metadata"]["uid"]}]}}}

    objects = [obj for each in "ab" for obj in full(each)]
    with FakeExtender(preempt=only_b) as fake:
        extender = {"preemptVerb": "preempt", "nodeCacheCapable": False}
        check(oracle, fake, extender, objects=objects, pods=[URGENT])


def test_nodes_that_an_extender_refuses_may_be_made_free_unless_it_says_that_is_no_use(
    oracle: Oracle,
) -> None:
    objects = [obj for each in "ab" for obj in full(each)] + [node("c", cpu="4")]
    for answer in (keep(failed={"c": "busy"}), keep(final={"c": "never"})):
        with FakeExtender(filter=answer) as fake:
            check(oracle, fake, {"filterVerb": "filter"}, objects=objects, pods=[URGENT])
