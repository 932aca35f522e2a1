"""One list of permissions, asked about one by one."""

import pytest
import yaml

from moorage.adapters.kube import errors
from moorage.adapters.kube.permissions import (
    PERMISSIONS,
    Finding,
    Permission,
    Scope,
    check,
    needed,
    needed_by_extender,
)
from tests.kit.fake_api import Answer, FakeApi

REVIEWS = "/selfsubjectaccessreviews$"


@pytest.fixture
async def api():
    async with FakeApi() as api:
        yield api


async def test_everything_is_asked_and_allowed(api):
    findings = await check(api.client(), PERMISSIONS, lease_namespace="sea", lease_name="mine")
    assert all(finding.ok for finding in findings)
    asked = [seen.body["spec"]["resourceAttributes"] for seen in api.seen("POST", REVIEWS)]
    assert len(asked) == sum(len(permission.verbs) for permission in PERMISSIONS)
    assert {"group": "", "resource": "pods", "subresource": "binding", "verb": "create"} in asked
    leases = [one for one in asked if one["resource"] == "leases"]
    assert {one["namespace"] for one in leases} == {"sea"}
    assert {one["verb"]: one.get("name") for one in leases} == {
        "get": "mine",
        "create": None,
        "update": "mine",
    }
    assert all("namespace" not in one for one in asked if one["resource"] != "leases")


@pytest.mark.parametrize(
    ("permission", "verb"),
    [(permission, verb) for permission in PERMISSIONS for verb in permission.verbs],
    ids=lambda value: value if isinstance(value, str) else value.resource,
)
async def test_each_verb_missing_is_found_and_named_with_its_rule(api, permission, verb):
    api.denied.add((verb, permission.resource, permission.group))
    findings = await check(api.client(), PERMISSIONS, lease_namespace="sea")
    (missing,) = [finding for finding in findings if not finding.ok]
    assert missing.permission is permission
    assert missing.missing == (verb,)
    assert missing.blocking == permission.required
    text = missing.text()
    assert f"{verb} {permission.resource} " in text
    assert f'API group "{permission.group}"' in text
    rule = {"apiGroups": [permission.group], "resources": [permission.resource], "verbs": [verb]}
    assert yaml.safe_load(missing.rule_yaml()) == [rule]
    assert text.endswith(missing.rule_yaml())
    in_lease_namespace = permission.scope is Scope.LEASE_NAMESPACE
    assert ("a Role in namespace sea" in text) == in_lease_namespace
    assert ("a ClusterRole" in text) != in_lease_namespace


def test_without_leader_election_no_lease_is_needed():
    assert "leases" in {permission.resource for permission in needed()}
    assert "leases" not in {permission.resource for permission in needed(leader_elect=False)}


def test_the_optional_ones_say_what_is_off():
    optional = {permission.feature for permission in PERMISSIONS if not permission.required}
    assert optional == {
        "default spreading",
        "device classes",
        "events",
        "explain endpoint",
        "policies",
        "preemption",
        "real use of nodes",
        "status of policies",
    }
    finding = Finding(Permission("g", "r", ("v",), "to do it", feature="it"), "", ("v",))
    assert '(optional: "it" is off without it)' in finding.text()
    assert not finding.blocking


def test_a_resource_is_listed_once_for_each_feature():
    names = [(permission.group, permission.resource, permission.feature) for permission in PERMISSIONS]
    assert len(names) == len(set(names))


async def test_being_refused_to_ask_is_an_error(api):
    api.on("POST", REVIEWS, Answer(403), times=None)
    with pytest.raises(errors.Forbidden):
        await check(api.client(), PERMISSIONS)


@pytest.mark.parametrize("body", [b"", b"{}", b'{"status": null}', b'{"status": {}}'])
async def test_an_answer_without_a_verdict_is_a_no(api, body):
    api.on("POST", REVIEWS, Answer(201, body), times=None)
    assert not any(finding.ok for finding in await check(api.client(), PERMISSIONS))


def test_an_extender_needs_little():
    """Without binding it changes nothing, and without the default plugins it looks at little."""

    def needs(**options):
        found = needed_by_extender(**options)
        return {(p.group, p.resource): set(p.verbs) for p in found}

    watch = {"list", "watch"}
    assert needs(full=False, bind=False) == {
        ("", "pods"): watch,
        ("", "nodes"): watch,
        ("", "namespaces"): watch,
        ("moorage.dev", "schedulingpolicies"): watch,
        ("moorage.dev", "clusterschedulingpolicies"): watch,
        ("metrics.k8s.io", "nodes"): {"list"},
    }
    binding = needs(full=False, bind=True)
    assert binding["", "pods"] == watch | {"get"}
    assert binding["", "pods/binding"] == {"create"}
    writing = needs(full=False, bind=False, status=True)
    assert writing["moorage.dev", "schedulingpolicies/status"] == {"patch"}
    both = needs(full=True, bind=True)
    assert [key for key, verbs in both.items() if "get" in verbs] == [("", "pods")]
    everything = needs(full=True, bind=False)
    assert everything["storage.k8s.io", "csinodes"] == watch
    assert everything["apps", "replicasets"] == watch
    assert not any(verbs - watch for verbs in everything.values())


def test_who_asks_need_not_be_known_without_the_explain_endpoint():
    assert "tokenreviews" in {permission.resource for permission in needed()}
    without = {permission.resource for permission in needed(explain=False)}
    assert not {"tokenreviews", "subjectaccessreviews"} & without
