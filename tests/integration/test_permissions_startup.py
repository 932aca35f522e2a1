"""Start-up with one permission missing, each in turn: what is required is named, what is optional is off."""

from collections.abc import Sequence
from typing import Any

import pytest

from moorage.adapters.kube.permissions import EXPLAIN_ENDPOINT, PERMISSIONS, Permission, Scope
from tests.controlplane.client import Client
from tests.controlplane.controlplane import ControlPlane
from tests.kit.manifests import node, pod
from tests.kit.operator import Operator
from tests.kit.policies_live import PolicyCluster, install_crds
from tests.kit.raw_policies import make_policy

REQUIRED = [(p, verb) for p in PERMISSIONS if p.required for verb in p.verbs]
OPTIONAL = [p for p in PERMISSIONS if not p.required]


def rules(without: Permission, verbs: Sequence[str]) -> dict[str, Any]:
    """All permissions but these verbs of one, as arguments for ``ControlPlane.user``."""
    cluster_wide: list[dict[str, Any]] = []
    in_namespace: list[dict[str, Any]] = []
    for permission in PERMISSIONS:
        left = [v for v in permission.verbs if permission is not without or v not in verbs]
        if left:
            where = in_namespace if permission.scope is Scope.LEASE_NAMESPACE else cluster_wide
            where.append(permission.rule(left))
    return {"rules": cluster_wide, "namespaced": {"kube-system": in_namespace}}


@pytest.mark.parametrize(
    ("permission", "verb"), REQUIRED, ids=[f"{p.resource.replace('/', '-')}-{verb}" for p, verb in REQUIRED]
)
def test_without_a_required_permission_it_does_not_start_and_says_what_to_add(
    control_plane: ControlPlane, permission: Permission, verb: str
) -> None:
    user = control_plane.user("moorage", **rules(permission, [verb]))
    with Operator(control_plane, kubeconfig=user, wait=False) as operator:
        assert operator.process.wait(60) == 1
    assert (
        f'missing permission: {verb} {permission.resource} in API group "{permission.group}"' in operator.log
    )
    assert "Role" in operator.log
    assert f"verbs: [{verb}]" in operator.log
    assert "Traceback" not in operator.log


def test_kopf_ends_with_an_error_as_well(control_plane: ControlPlane) -> None:
    permission = next(p for p in PERMISSIONS if p.resource == "pods/binding")
    user = control_plane.user("moorage", **rules(permission, permission.verbs))
    with Operator(control_plane, kubeconfig=user, wait=False, by_kopf=True) as operator:
        assert operator.process.wait(60) == 1
    assert "missing permission: create pods/binding" in operator.log


@pytest.mark.parametrize("permission", OPTIONAL, ids=[f"{p.feature}-{p.resource}" for p in OPTIONAL])
def test_without_an_optional_permission_it_runs_with_one_warning(
    control_plane: ControlPlane, cluster: Client, permission: Permission
) -> None:
    install_crds(cluster)
    cluster.apply([node("n1")])
    user = control_plane.user("moorage", **rules(permission, permission.verbs))
    asked_for: Any = (
        {"MOORAGE_EXPLAIN_LISTEN": "127.0.0.1:0"} if permission.feature == EXPLAIN_ENDPOINT else {}
    )
    with Operator(control_plane, kubeconfig=user, **asked_for) as operator:
        cluster.create(pod("p"))
        cluster.wait_for(lambda: cluster.node_of("p"), 5)
        if permission.feature == "events":
            cluster.wait_for(lambda: operator.metric("moorage_events_dropped_total", reason="off") == 1, 5)
            assert cluster.events("p") == []
        assert operator.log.count("WARNING") == 1
        assert f'"{permission.feature}" is off without it' in operator.log


def test_with_just_the_permissions_that_are_listed_it_does_everything(
    control_plane: ControlPlane, cluster: Client
) -> None:
    install_crds(cluster)
    policy = make_policy("p", load={"limit": {"cpu": 50}})
    cluster.apply([node("n1"), policy])
    user = control_plane.user("moorage", **rules(PERMISSIONS[0], []))
    with Operator(control_plane, kubeconfig=user) as operator:
        cluster.apply([pod("p"), pod("big", cpu="64")])
        cluster.wait_for(lambda: cluster.events("p") and cluster.events("big"), 5)
        cluster.wait_for(lambda: cluster.condition("big"), 5)
        policies = PolicyCluster(control_plane, operator)
        policies.await_status(policy, "pods", {"matched": 2, "pending": 1, "bound": 1})
        metrics = policies.condition(policy, "MetricsAvailable")
        assert metrics["reason"] == "NotServed", "it may ask"
        assert "Forbidden" not in operator.log
        warnings = [line for line in operator.log.splitlines() if "WARNING" in line]
        assert not [line for line in warnings if "is off" in line or "403" in line], warnings
    assert operator.process.returncode == 0


@pytest.mark.parametrize(
    ("env", "text"),
    [
        ({"MOORAGE_LEADER_ELECT": "perhaps"}, "MOORAGE_LEADER_ELECT: must be true or false"),
        ({"KUBECONFIG": "/nonexistent/kubeconfig"}, "/nonexistent/kubeconfig"),
        ({"MOORAGE_METRICS_LISTEN": "192.0.2.1:80"}, "cannot be listened at"),
    ],
    ids=["setting", "kubeconfig", "address"],
)
@pytest.mark.parametrize("by_kopf", [False, True], ids=["moorage-run", "kopf-run"])
def test_what_is_set_wrong_is_named(control_plane: ControlPlane, env: Any, text: str, by_kopf: bool) -> None:
    with Operator(control_plane, wait=False, by_kopf=by_kopf, **env) as operator:
        assert operator.process.wait(60) in (1, 2)
    assert text in operator.log
