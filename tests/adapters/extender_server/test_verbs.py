"""The verbs without HTTP: 10,000 bodies that are nearly right, and what our own faults lead to."""

import collections
import copy
import gc
import random
from typing import Any

import orjson
import pytest

from moorage.adapters.extender import wire
from moorage.adapters.extender_server.verbs import Verbs
from moorage.adapters.kube.convert import Converter
from moorage.core.framework.alike import Alike, AlikeCache
from moorage.core.model.extender import NoAnswer
from moorage.core.model.pod import Pod
from moorage.core.model.policy import LimitRule, NodeRules, PreemptionRules, Preference, Scoring
from tests.kit.builders import make_node, make_pod
from tests.kit.extender_rig import ExtenderRig
from tests.kit.policy_builders import labelled, make_policy

SSD = labelled({"disk": "ssd"})
POLICY = make_policy(
    "p",
    nodes=NodeRules(selector=SSD, keep_free={"cpu": 10}),
    limits=(LimitRule("kubernetes.io/hostname", 3),),
    scoring=Scoring(prefer=(Preference(selector=SSD, expression=None, weight=1),)),
    preemption=PreemptionRules(min_victim_runtime=60, max_victims=2),
)
NODES = {"a": {}, "b": {"disk": "ssd", "kubernetes.io/hostname": "b"}}
POD = make_pod(
    labels={"app": "web"},
    cpu="100m",
    status={"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False"}]},
    metadata={"creationTimestamp": "2026-12-01T12:00:00Z", "ownerReferences": []},
    tolerations=[{"key": "k", "operator": "Exists"}],
    volumes=[{"name": "v", "emptyDir": {}}],
    affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}},
)
VICTIM = make_pod("victim", node="a", status={"startTime": "2026-12-01T10:00:00Z"})
UID = VICTIM["metadata"]["uid"]
BODIES: dict[str, list[Any]] = {
    "filter": [
        {"Pod": POD, "NodeNames": ["a", "b", "x"], "Nodes": None},
        {
            "Pod": POD,
            "Nodes": {"metadata": {}, "items": [make_node("a"), make_node("new")]},
            "NodeNames": None,
        },
    ],
    "preempt": [
        {"Pod": POD, "NodeNameToMetaVictims": {"b": {"Pods": [{"UID": UID}], "NumPDBViolations": 1}}},
        {"Pod": POD, "NodeNameToVictims": {"b": {"Pods": [VICTIM], "NumPDBViolations": 0}}},
    ],
    "bind": [{"PodName": "web", "PodNamespace": "default", "PodUID": "u", "Node": "b"}],
}
BODIES["prioritize"] = BODIES["filter"]
ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    1 << 62,
    1.5,
    "",
    "a",
    "\x00",
    "ü" * 300,
    [],
    {},
    [None],
    {"": None},
    [[[]]],
    {"name": 3},
    "9" * 400,
]


def mutated(body, rng):
    """The body with a few of its values or keys replaced, or as bytes that are no JSON any more."""
    body = copy.deepcopy(body)
    for _ in range(rng.randrange(1, 4)):
        where = body
        while True:
            keys = list(where) if isinstance(where, dict) else list(range(len(where)))
            if not keys:
                break
            key = rng.choice(keys)
            if isinstance(where[key], dict | list) and where[key] and rng.random() < 0.75:
                where = where[key]
                continue
            if isinstance(where, dict) and rng.random() < 0.25:
                where[rng.choice([str(key).upper(), str(key).lower(), "", "metadata"])] = where.pop(key)
            else:
                where[key] = copy.deepcopy(rng.choice(ODD))
            break
    content = orjson.dumps(body)
    if rng.random() < 0.1:
        content = content[: rng.randrange(len(content))]
    if rng.random() < 0.1 and content:
        place = rng.randrange(len(content))
        content = content[:place] + bytes([rng.randrange(256)]) + content[place + 1 :]
    return content


def judge(verb, content, answered):
    """What the protocol allows: its result, or words for what is wrong."""
    if answered.status != 200:
        assert answered.status == 400
        assert orjson.loads(answered.body)["Error"]
        assert b"Traceback" not in answered.body
        return
    if verb == "prioritize":
        assert all(0 <= score <= 10 for _, score in wire.read_prioritized(answered.body).scores)
    elif verb == "preempt":
        wire.read_preempted(answered.body)
    elif verb == "bind":
        orjson.loads(answered.body)["Error"].encode()
    else:
        sent = {key.lower(): value for key, value in orjson.loads(content).items()}
        whole = sent.get("nodes") is not None
        found = wire.read_filtered(answered.body, node_cache_capable=not whole)
        if whole:
            assert all(
                node in sent["nodes"]["items"] for node in orjson.loads(answered.body)["Nodes"]["items"]
            )
        else:
            assert set(found.passed) <= set(sent["nodenames"])


@pytest.mark.parametrize("full", [False, True])
async def test_bodies_that_are_nearly_right(full):
    rig = ExtenderRig(POLICY, nodes=NODES, full=full)
    verbs = Verbs(rig.service, rig.converter)
    rng = random.Random(20261201 + full)
    statuses: dict[str, set[int]] = {verb: set() for verb in BODIES}
    for _ in range(5000):
        verb = rng.choice(sorted(BODIES))
        content = mutated(rng.choice(BODIES[verb]), rng)
        answered = await verbs.by_name[verb](content)
        judge(verb, content, answered)
        statuses[verb].add(answered.status)
    assert all(found == {200, 400} for found in statuses.values())
    assert len(rig.engine.cache) == 0
    assert sorted(filter(rig.service.knows_node, ["a", "b", "x", "new", ""])) == ["a", "b"]


async def test_little_is_kept_of_what_was_asked(monkeypatch):
    """No pod; what was found out about the kinds of pods seen last, up to a limit."""
    monkeypatch.setattr(AlikeCache, "LIMIT", 1 << 20)
    rig = ExtenderRig(POLICY, nodes=NODES)
    verbs = Verbs(rig.service, rig.converter)
    before = living()
    for number in range(1000):
        pod = make_pod(f"p{number}", cpu=f"{number}m", labels={"n": str(number)})
        await verbs.filter(orjson.dumps({"Pod": pod, "NodeNames": ["a", "b"]}))
    kept = living()
    assert kept[Pod] - before[Pod] < 20
    assert kept[Alike] - before[Alike] < 300


def living():
    """How many objects there are of each type, those of other tests included."""
    gc.collect()
    return collections.Counter(type(each) for each in gc.get_objects())


async def test_faults_of_ours_have_words(monkeypatch):
    rig = ExtenderRig(nodes=NODES)

    class Broken(Converter):
        def pod(self, obj):
            raise IndexError("somewhere deep")

    body = orjson.dumps({"Pod": POD, "NodeNames": []})
    answered = await Verbs(rig.service, Broken()).filter(body)
    assert (answered.status, orjson.loads(answered.body)) == (400, {"Error": "Pod cannot be read"})
    failed = NoAnswer("a plugin failed")
    monkeypatch.setattr(rig.service, "filter", lambda *_: failed)
    monkeypatch.setattr(rig.service, "prioritize", lambda *_: failed)
    verbs = Verbs(rig.service, rig.converter)
    assert orjson.loads((await verbs.filter(body)).body) == {"Error": "a plugin failed"}
    assert (await verbs.prioritize(body)).status == 503
