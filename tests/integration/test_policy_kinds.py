"""Policies and their definitions: these may come late, and go; users' objects stay as they are."""

from typing import Any

import pytest

from moorage.adapters.kube.permissions import PERMISSIONS, Permission
from tests.controlplane.client import ApiError, Client
from tests.controlplane.controlplane import ControlPlane
from tests.integration.test_permissions_startup import rules
from tests.kit.manifests import node, pod
from tests.kit.operator import Operator
from tests.kit.policies_live import API_VERSION, PolicyCluster, install_crds
from tests.kit.raw_policies import make_policy


@pytest.mark.parametrize("by_kopf", [False, True], ids=["moorage-run", "kopf-run"])
def test_they_are_picked_up_when_their_definitions_come_and_come_again(
    control_plane: ControlPlane, cluster: Client, by_kopf: bool
) -> None:
    here, everywhere = make_policy("here", "default"), make_policy("everywhere")
    cluster.apply([node("n1")])
    with Operator(control_plane, by_kopf=by_kopf) as operator:
        policies = PolicyCluster(control_plane, operator)
        cluster.create(pod("p"))
        policies.placed("p")
        assert operator.log.count("WARNING") == 1
        assert "Policies are off" in operator.log

        for _ in range(2):
            install_crds(cluster)
            for policy in (here, everywhere):
                policies.apply(policy)
                assert policies.condition(policy, "Accepted")["status"] == "True"
                assert policies.condition(policy, "Effective")["status"] == "True"
                assert not {"annotations", "finalizers"} & policies.read(policy)["metadata"].keys()
            assert operator.metric("moorage_policies", state="in_force") == 2

            for kind in ("schedulingpolicies", "clusterschedulingpolicies"):
                cluster.delete("CustomResourceDefinition", f"{kind}.moorage.dev")
            cluster.wait_for(lambda: operator.metric("moorage_policies", state="in_force") == 0, 60)
        cluster.create(pod("q"))
        policies.placed("q")
    assert operator.process.returncode == 0, operator.log
    assert "ERROR" not in operator.log
    assert "Traceback" not in operator.log


def test_without_the_right_to_see_them_it_schedules_and_takes_them_up_when_it_is_given(
    control_plane: ControlPlane, cluster: Client
) -> None:
    install_crds(cluster)
    cluster.apply(
        [node("n1", disk="ssd"), make_policy("hdd", nodes={"selector": {"matchLabels": {"disk": "hdd"}}})]
    )
    permission = next(p for p in PERMISSIONS if p.resource == "schedulingpolicies")
    without = [p for p in PERMISSIONS if p.feature == permission.feature]
    user = control_plane.user("moorage", **_rules_without(*without))
    with Operator(control_plane, kubeconfig=user) as operator:
        policies = PolicyCluster(control_plane, operator)
        cluster.create(pod("p"))
        policies.placed("p")
        assert '"policies" is off without it' in operator.log
        control_plane.user("moorage", **rules(PERMISSIONS[0], []))
        cluster.wait_for(lambda: operator.metric("moorage_policies", state="in_force") == 1, 30)
        cluster.create(pod("q"))
        assert "hdd" in policies.refusal("q")
    assert operator.process.returncode == 0, operator.log
    assert "ERROR" not in operator.log


def test_nothing_of_ours_keeps_a_policy_when_the_scheduler_is_gone(
    control_plane: ControlPlane, cluster: Client
) -> None:
    install_crds(cluster)
    policy = make_policy("p", "default")
    with Operator(control_plane) as operator:
        PolicyCluster(control_plane, operator).apply(policy)
    cluster.delete("SchedulingPolicy", "p", "default", api_version=API_VERSION)
    with pytest.raises(ApiError, match="404"):
        cluster.get("SchedulingPolicy", "p", "default", api_version=API_VERSION)


def test_a_policy_that_is_there_at_the_start_counts_for_the_first_pod(
    control_plane: ControlPlane, cluster: Client
) -> None:
    install_crds(cluster)
    cluster.apply([node("a"), node("b", disk="ssd")])
    cluster.apply([make_policy("ssd", nodes={"selector": {"matchLabels": {"disk": "ssd"}}})])
    names = [f"p{i}" for i in range(20)]
    cluster.apply([pod(name) for name in names])
    with Operator(control_plane) as operator:
        assert set(PolicyCluster(control_plane, operator).placements(names)) == {"b"}


def _rules_without(*missing: Permission) -> dict[str, Any]:
    """All permissions but these, as arguments for ``ControlPlane.user``."""
    allowed = rules(missing[0], missing[0].verbs)
    gone = [permission.rule() for permission in missing]
    return {**allowed, "rules": [rule for rule in allowed["rules"] if rule not in gone]}
