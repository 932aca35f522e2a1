"""Permissions on a real API server: what the list grants is enough, and each verb it lacks is found."""

import asyncio

import pytest
from click.testing import CliRunner

from moorage.adapters.kube import errors
from moorage.adapters.kube.client import KubeClient
from moorage.adapters.kube.permissions import PERMISSIONS, Permission, Scope, check
from moorage.cli.check import check as command
from tests.controlplane.controlplane import ControlPlane

NAMESPACE = "kube-system"


def grant(control_plane: ControlPlane, name: str, permissions: list[Permission]) -> str:
    """A user with these permissions and no others; the path of its kubeconfig."""
    cluster = [p.rule() for p in permissions if p.scope is Scope.CLUSTER]
    lease = [p.rule() for p in permissions if p.scope is Scope.LEASE_NAMESPACE]
    return str(control_plane.user(name, cluster, namespaced={NAMESPACE: lease} if lease else None))


def lacking(permission: Permission, verb: str) -> list[Permission]:
    """All permissions but one verb."""
    rest = tuple(other for other in permission.verbs if other != verb)
    kept = [other for other in PERMISSIONS if other is not permission]
    if rest:
        kept.append(Permission(permission.group, permission.resource, rest, permission.why, permission.scope))
    return kept


def test_the_whole_list_is_enough(control_plane):
    kubeconfig = grant(control_plane, "all", list(PERMISSIONS))
    result = CliRunner().invoke(command, ["--kubeconfig", kubeconfig, "--lease-namespace", NAMESPACE])
    assert result.exit_code == 0, result.output
    assert "missing" not in result.output
    assert "optional" not in result.output


@pytest.mark.parametrize(
    ("permission", "verb"),
    [(permission, verb) for permission in PERMISSIONS for verb in permission.verbs],
    ids=lambda value: value if isinstance(value, str) else value.resource,
)
def test_each_verb_taken_away_is_named(control_plane, permission, verb):
    kubeconfig = grant(control_plane, "some", lacking(permission, verb))
    result = CliRunner().invoke(command, ["--kubeconfig", kubeconfig, "--lease-namespace", NAMESPACE])
    state = "missing" if permission.required else "optional"
    (line,) = [line for line in result.output.splitlines() if line.startswith(("missing", "optional"))]
    assert line.startswith(f"{state:9} {f'{permission.group} {permission.resource}'.strip()}: {verb}")
    assert f"apiGroups: ['{permission.group}']" in result.output or permission.group in result.output
    assert f"verbs: [{verb}]" in result.output
    assert result.exit_code == (1 if permission.required else 0)


async def test_the_rule_that_is_named_is_the_one_that_helps(control_plane):
    """What a finding says to add, added, makes it go away."""
    import yaml

    kubeconfig = await asyncio.to_thread(grant, control_plane, "few", [])
    async with await KubeClient.connect(kubeconfig) as client:
        findings = await check(client, PERMISSIONS, lease_namespace=NAMESPACE)
        assert not any(finding.ok for finding in findings)
        rules = [(finding, yaml.safe_load(finding.rule_yaml())) for finding in findings]
        cluster = [rule for finding, rules_ in rules for rule in rules_ if not finding.namespace]
        lease = [rule for finding, rules_ in rules for rule in rules_ if finding.namespace]
        await asyncio.to_thread(control_plane.user, "few", cluster, namespaced={NAMESPACE: lease})
        assert all(finding.ok for finding in await check(client, PERMISSIONS, lease_namespace=NAMESPACE))


async def test_a_role_limited_to_our_lease_is_enough(control_plane):
    rules = [
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
        {
            "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "resourceNames": ["moorage"],
            "verbs": ["get", "update"],
        },
    ]  # fmt: skip
    kubeconfig = await asyncio.to_thread(control_plane.user, "lessee", [], namespaced={NAMESPACE: rules})
    async with await KubeClient.connect(str(kubeconfig)) as client:
        leases = [permission for permission in PERMISSIONS if permission.resource == "leases"]
        (finding,) = await check(client, leases, lease_namespace=NAMESPACE)
        assert finding.ok
        (finding,) = await check(client, leases, lease_namespace="default")
        assert finding.missing == ("get", "create", "update")


def test_an_api_server_that_is_down(control_plane):
    control_plane.stop_apiserver()
    result = CliRunner().invoke(command, ["--kubeconfig", str(control_plane.kubeconfig)])
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert control_plane.url in result.stderr


async def test_a_wrong_token_is_unauthorized(control_plane):
    path = control_plane.write_kubeconfig("stranger", "not-a-token")
    async with await KubeClient.connect(str(path)) as client:
        with pytest.raises(errors.Unauthorized):
            await client.get("/api/v1/nodes")
