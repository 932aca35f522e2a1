"""The CRDs on the real API server: it takes what is right, and names the field of what is not."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane.client import ApiError, Client
from tests.controlplane.controlplane import ControlPlane
from tests.kit.raw_policies import BAD, GOOD, make_policy

CRDS = sorted((Path(__file__).parents[2] / "crds").glob("*.yaml"))
PATH = "/apis/moorage.dev/v1alpha1"


@pytest.fixture(scope="module")
def api(_session_control_plane: ControlPlane) -> Iterator[Client]:
    """An API server that knows the CRDs; nothing is stored but what a test stores."""
    _session_control_plane.reset()
    client = _session_control_plane.admin
    client.apply([yaml.safe_load(path.read_text()) for path in CRDS])
    yield client
    _session_control_plane.reset()


def create(api: Client, policy, *, dry: bool = True):
    """What the API server makes of a policy, read as strictly as kubectl asks for."""
    namespace = policy["metadata"].get("namespace")
    path = (
        f"{PATH}/namespaces/{namespace}/schedulingpolicies"
        if namespace
        else f"{PATH}/clusterschedulingpolicies"
    )
    query = "?fieldValidation=Strict" + ("&dryRun=All" if dry else "")
    return api.request("POST", path + query, policy)


@pytest.mark.parametrize("namespace", [None, "default"], ids=["cluster", "namespaced"])
@pytest.mark.parametrize("spec", GOOD.values(), ids=GOOD)
def test_takes_what_is_right(api, spec, namespace):
    kept = create(api, make_policy(namespace=namespace, **spec))
    asked = make_policy(namespace=namespace, **spec)["spec"]
    assert {key: kept["spec"][key] for key in asked if key in ("nodes", "scoring", "selector")} == {
        key: asked[key] for key in asked if key in ("nodes", "scoring", "selector")
    }


@pytest.mark.parametrize(("spec", "field"), BAD.values(), ids=BAD)
def test_refuses_what_is_wrong_and_names_the_field(api, spec, field):
    policy = make_policy(namespace="default", **spec)
    if policy["spec"]["selector"] is None:
        del policy["spec"]["selector"]
    with pytest.raises(ApiError) as caught:
        create(api, policy)
    assert caught.value.status in (422, 400)
    assert re.search(re.escape(field) + r"(?![\w.\[])", str(caught.value)), str(caught.value)


def test_defaults_are_written_down(api):
    kept = create(
        api,
        make_policy(
            windows=[{"start": "01:00", "end": "02:00"}],
            pools={"items": [{"name": "a", "selector": {}}]},
            spread=[{"topologyKey": "z"}],
            load={"limit": {"cpu": 80}},
        ),
    )["spec"]
    assert (kept["mode"], kept["precedence"]) == ("Enforce", 0)
    assert kept["windows"] == [{"start": "01:00", "end": "02:00", "timeZone": "UTC", "action": "Allow"}]
    assert kept["pools"]["whenFull"] == "next"
    assert kept["spread"] == [{"topologyKey": "z", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]
    assert (kept["load"]["staleAfter"], kept["load"]["onStale"]) == ("3m", "Ignore")


def test_only_policies_of_the_cluster_select_namespaces(api):
    selector = {"namespaceSelector": {"matchLabels": {"team": "data"}}}
    assert create(api, make_policy(selector=selector))["spec"]["selector"] == selector
    with pytest.raises(ApiError, match="namespaceSelector"):
        create(api, make_policy(namespace="default", selector=selector))


@pytest.mark.parametrize("field", ["gang", "quota", "ordering", "aging"])
def test_knows_no_field_that_does_nothing(api, field):
    spec: Any = {field: {}}
    with pytest.raises(ApiError, match=f'unknown field "spec.{field}"'):
        create(api, make_policy(**spec))


def test_status_is_written_apart_from_the_spec(api):
    create(api, make_policy("mine", "default"), dry=False)
    path = f"{PATH}/namespaces/default/schedulingpolicies/mine"
    stored = api.request("GET", path)
    assert "status" not in stored
    stored["status"] = {"observedGeneration": 1, "pods": {"matched": 3, "pending": 1, "bound": 2}}
    stored["spec"]["mode"] = "Audit"
    after = api.request("PUT", f"{path}/status", stored)
    assert (after["spec"]["mode"], after["status"]["pods"]["matched"]) == ("Enforce", 3)


def test_short_names_and_category(api):
    resources = {r["name"]: r for r in api.request("GET", PATH)["resources"]}
    assert resources["schedulingpolicies"]["shortNames"] == ["schedpol"]
    assert resources["clusterschedulingpolicies"]["shortNames"] == ["cschedpol"]
    assert {tuple(r["categories"]) for name, r in resources.items() if "/" not in name} == {("moorage",)}
