"""What Helm makes of the chart, for each file in ``values``; no cluster is needed for that, but Helm is."""

import re
import shlex
import textwrap
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import pytest
import yaml
from click.testing import CliRunner

from moorage.adapters.kube.permissions import PERMISSIONS, Scope, needed_by_extender
from moorage.cli.main import main
from moorage.configuration.read import read_config
from tests.kit.helm import CHART, VALUES, Helm, HelmError, only
from tests.kit.manifests import Obj

pytestmark = pytest.mark.integration

FILES = sorted(VALUES.glob("*.yaml"))
BASE = {
    "ClusterRole": 1, "ClusterRoleBinding": 1, "CustomResourceDefinition": 2, "Deployment": 1, "NetworkPolicy": 1,
    "PodDisruptionBudget": 1, "Role": 1, "RoleBinding": 1, "Service": 1, "ServiceAccount": 1,
}  # fmt: skip
SECOND = dict.fromkeys(
    ("ClusterRole", "ClusterRoleBinding", "Deployment", "NetworkPolicy", "Service", "ServiceAccount"), 2
)
KINDS = {
    "default": BASE,
    "openshift": BASE,
    "minimal": {"Deployment": 1, "Service": 1},
    "extender": {**BASE, **SECOND, "ServiceMonitor": 2},
    "everything": {
        **BASE, **SECOND, "PodDisruptionBudget": 2, "ConfigMap": 2, "PrometheusRule": 1, "ServiceMonitor": 2,
    },
}  # fmt: skip


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def file(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


@pytest.fixture
def objects(helm: Helm, file: Path) -> list[Obj]:
    return helm.template(file)


def workloads(objects: list[Obj]) -> list[Obj]:
    return [obj for obj in objects if obj["kind"] == "Deployment"]


def flat(rules: list[Obj]) -> set[tuple[str, str, str]]:
    return {(group, resource, verb) for rule in rules for group in rule["apiGroups"]
            for resource in rule["resources"] for verb in rule["verbs"]}  # fmt: skip


def test_helm_finds_nothing_to_say(helm: Helm, file: Path) -> None:
    said = helm.run("lint", "--strict", CHART, *helm.given(file))
    assert "[WARNING]" not in said
    assert "[ERROR]" not in said


def test_the_kinds_are_those_that_are_asked_for(objects: list[Obj], file: Path) -> None:
    assert Counter(obj["kind"] for obj in objects) == KINDS[file.stem]


def test_no_object_is_there_twice_and_all_can_be_told_apart(objects: list[Obj]) -> None:
    names = Counter((obj["kind"], obj["metadata"]["name"]) for obj in objects)
    assert names.most_common(1)[0][1] == 1
    cluster_wide = {"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"}
    for obj in objects:
        assert obj["metadata"].get("namespace") == (None if obj["kind"] in cluster_wide else "harbour")
        labels = obj["metadata"]["labels"]
        assert labels["app.kubernetes.io/instance"] == "sea"
        assert labels["app.kubernetes.io/part-of"] == "moorage"
        assert labels["app.kubernetes.io/managed-by"] == "Helm"


def test_pods_have_no_rights_on_their_node(objects: list[Obj], file: Path) -> None:
    for workload in workloads(objects):
        spec = workload["spec"]["template"]["spec"]
        assert spec["schedulerName"] == "default-scheduler"
        context = dict(spec["securityContext"])
        if file.stem != "openshift":
            ids = [context.pop(key) for key in ("runAsUser", "runAsGroup", "fsGroup")]
            assert all(number > 0 for number in ids)
        assert context == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
        assert not {"hostNetwork", "hostPID", "hostIPC", "initContainers"} & set(spec)
        for container in spec["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
        assert not any("hostPath" in volume for volume in spec["volumes"])


def test_selectors_find_the_pods_and_no_others(objects: list[Obj]) -> None:
    pods = {w["metadata"]["name"]: w["spec"]["template"]["metadata"]["labels"] for w in workloads(objects)}

    def selected(selector: Obj) -> list[str]:
        return [name for name, labels in pods.items() if selector.items() <= labels.items()]

    for obj in objects:
        kind, spec = obj["kind"], obj.get("spec", {})
        if kind in ("Deployment", "PodDisruptionBudget"):
            assert selected(spec["selector"]["matchLabels"]) == [obj["metadata"]["name"]]
        elif kind == "NetworkPolicy":
            assert selected(spec["podSelector"]["matchLabels"]) == [obj["metadata"]["name"]]
        elif kind == "Service":
            assert selected(spec["selector"]) == [obj["metadata"]["name"].removesuffix("-metrics")]
        elif kind == "ServiceMonitor":
            services = [o for o in objects if o["kind"] == "Service"]
            wanted = spec["selector"]["matchLabels"].items()
            (service,) = [s for s in services if wanted <= s["metadata"]["labels"].items()]
            assert [p["name"] for p in service["spec"]["ports"]] == [spec["endpoints"][0]["port"]]
    for workload in workloads(objects):
        for constraint in workload["spec"]["template"]["spec"].get("topologySpreadConstraints", []):
            assert selected(constraint["labelSelector"]["matchLabels"]) == [workload["metadata"]["name"]]


def test_probes_services_and_policies_mean_ports_that_are_listened_at(objects: list[Obj]) -> None:
    for workload in workloads(objects):
        (container,) = workload["spec"]["template"]["spec"]["containers"]
        (port,) = container["ports"]
        address = next(
            a.partition("=")[2] for a in container["args"] if a.startswith(("--metrics-listen", "--listen"))
        )
        assert address.rpartition(":")[2] == str(port["containerPort"])
        assert not address.startswith(("127.", "localhost"))
        for name in ("startupProbe", "livenessProbe", "readinessProbe"):
            probe = container[name]
            assert probe["httpGet"]["port"] == port["name"]
            assert probe["httpGet"]["path"] == ("/readyz" if name == "readinessProbe" else "/healthz")
            # A certificate of its own the kubelet has none: TlsFiles asks for one and leaves it to the verbs.
            tls = any(argument.startswith("--tls-cert=") for argument in container["args"])
            assert probe["httpGet"]["scheme"] == ("HTTPS" if tls else "HTTP")
        component = workload["spec"]["selector"]["matchLabels"]["app.kubernetes.io/component"]
        for obj in objects:
            if obj["metadata"]["labels"].get("app.kubernetes.io/component") != component:
                continue
            if obj["kind"] == "Service":
                assert obj["spec"]["ports"][0]["targetPort"] == port["name"]
            if obj["kind"] == "NetworkPolicy":
                assert obj["spec"]["ingress"][0]["ports"] == [{"protocol": "TCP", "port": port["name"]}]


def test_mounts_and_volumes_fit_together_and_only_tmp_can_be_written(objects: list[Obj]) -> None:
    made = {o["metadata"]["name"] for o in objects if o["kind"] == "ConfigMap"}
    for workload in workloads(objects):
        spec = workload["spec"]["template"]["spec"]
        mounts = spec["containers"][0]["volumeMounts"]
        volumes = {volume["name"]: volume for volume in spec["volumes"]}
        assert [mount["name"] for mount in mounts] == list(volumes)
        assert [mount["mountPath"] for mount in mounts if not mount.get("readOnly")] == ["/tmp"]
        assert {v["configMap"]["name"] for v in volumes.values() if "configMap" in v} <= made


def command_named(name: str) -> click.Command | None:
    return main.get_command(click.Context(main), name)


def parsed(arguments: list[str]) -> dict[str, Any]:
    """What the command line makes of the arguments; click's own error if it does not know one."""
    command = command_named(arguments[0])
    assert command is not None, arguments
    return command.make_context(arguments[0], list(arguments[1:])).params


def test_the_scheduler_is_started_with_options_that_it_has(objects: list[Obj], file: Path) -> None:
    (workload,) = [w for w in workloads(objects) if not w["metadata"]["name"].endswith("-extender")]
    options = parsed(workload["spec"]["template"]["spec"]["containers"][0]["args"])
    if file.stem == "everything":
        assert options["lease_name"] == "helm"
        assert (options["lease_duration"], options["renew_deadline"], options["retry_period"]) == (
            30,
            20,
            2.5,
        )
        assert options["node_ready_guard"] is False
        assert options["metrics_listen"] == "[::]:9000"
        assert options["config"] == "/etc/moorage/config.yaml"
        assert (options["verbose"], options["log_format"]) == (2, "text")
        assert options["liveness"] == "127.0.0.1:9001"
    elif file.stem == "minimal":
        assert options["leader_elect"] is False
        assert options["scheduler_name"] == ("one", "two")
    else:
        assert options["lease_namespace"] == "harbour"
        assert options["lease_name"] == "sea-moorage"
        assert options["leader_elect"] is True
        assert options["scheduler_name"] == ()


@pytest.mark.parametrize("stem", ["everything", "extender"])
def test_the_extender_is_started_with_options_that_it_has(helm: Helm, stem: str) -> None:
    objects = helm.template(VALUES / f"{stem}.yaml")
    (workload,) = [w for w in workloads(objects) if w["metadata"]["name"].endswith("-extender")]
    (container,) = workload["spec"]["template"]["spec"]["containers"]
    options = parsed(container["args"])
    files = ("tls_cert", "tls_key", "client_ca")
    assert str(options["listen"]) == "0.0.0.0:10270"
    assert not options["write_status"]
    if stem == "everything":
        assert (options["full"], options["enable_bind"], options["prefix"]) == (True, True, "/scheduler")
        assert options["scheduler_name"] == ("default-scheduler", "other")
        (mount,) = [m for m in container["volumeMounts"] if m["name"] == "tls"]
        assert [str(Path(options[name]).parent) for name in files] == [mount["mountPath"]] * 3
    else:
        assert (options["full"], options["enable_bind"]) == (None, None)
        assert options["prefix"] == "/policies"
        assert [options[name] for name in files] == [None] * 3


def test_the_configuration_can_be_read(helm: Helm) -> None:
    data = only(helm.template(VALUES / "everything.yaml"), "ConfigMap", "pilot-config")["data"]
    configuration = read_config(data["config.yaml"])
    assert list(configuration.profiles) == ["moorage", "packing"]
    assert configuration.warnings == ()


@pytest.mark.parametrize("explain", [False, True])
def test_the_roles_grant_what_is_checked_and_nothing_else(helm: Helm, explain: bool) -> None:
    objects = helm.template({"rbac.explain": explain})
    wide = {(p.group, p.resource, verb) for p in PERMISSIONS for verb in p.verbs
            if p.scope is Scope.CLUSTER and (explain or p.feature != "explain endpoint")}  # fmt: skip
    near = {
        (p.group, p.resource, verb) for p in PERMISSIONS for verb in p.verbs if p.scope is not Scope.CLUSTER
    }
    assert flat(only(objects, "ClusterRole")["rules"]) == wide
    role = only(objects, "Role")
    assert flat(role["rules"]) == near
    for rule in role["rules"]:
        assert rule.get("resourceNames") == (None if rule["verbs"] == ["create"] else ["sea-moorage"])
    for binding in (only(objects, "ClusterRoleBinding"), only(objects, "RoleBinding")):
        assert binding["subjects"] == [
            {"kind": "ServiceAccount", "name": "sea-moorage", "namespace": "harbour"}
        ]
        assert only(objects, binding["roleRef"]["kind"])["metadata"]["name"] == binding["roleRef"]["name"]


def test_an_extender_that_is_alone_writes_the_status(helm: Helm) -> None:
    values = {"extender.enabled": True, "extender.writeStatus": True, "scheduler.replicas": 0}
    (workload,) = [w for w in workloads(helm.template(values)) if w["metadata"]["name"].endswith("-extender")]
    assert parsed(workload["spec"]["template"]["spec"]["containers"][0]["args"])["write_status"]


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("bind", [False, True])
@pytest.mark.parametrize("status", [False, True])
def test_the_role_of_the_extender_grants_what_is_checked(
    helm: Helm, full: bool, bind: bool, status: bool
) -> None:
    needed = needed_by_extender(full=full, bind=bind, status=status)
    tls = {"extender.tls": {"secretName": "tls", "clientCA": True}} if bind else {}
    alone = {"extender.writeStatus": True, "scheduler.replicas": 0} if status else {}
    values = {"extender.enabled": True, "extender.full": full, "extender.bind.enabled": bind, **tls, **alone}
    role = only(helm.template(values), "ClusterRole", "harbour-sea-moorage-extender")
    assert flat(role["rules"]) == {(p.group, p.resource, verb) for p in needed for verb in p.verbs}


def test_the_extender_may_write_only_bindings_and_only_if_told_to(helm: Helm) -> None:
    for stem, expected in (("extender", set()), ("everything", {("", "pods/binding", "create")})):
        roles = [o for o in helm.template(VALUES / f"{stem}.yaml") if o["kind"] in ("ClusterRole", "Role")]
        (role,) = [role for role in roles if role["metadata"]["name"].endswith("-extender")]
        assert {rule for rule in flat(role["rules"]) if rule[2] not in ("get", "list", "watch")} == expected


@pytest.mark.parametrize("feature", sorted({p.feature for p in PERMISSIONS if p.feature}))
def test_a_feature_can_be_denied(helm: Helm, feature: str) -> None:
    objects = helm.template({"rbac.without": [feature], "rbac.explain": True})
    expected = {(p.group, p.resource, verb) for p in PERMISSIONS for verb in p.verbs
                if p.scope is Scope.CLUSTER and p.feature != feature}  # fmt: skip
    assert flat(only(objects, "ClusterRole")["rules"]) == expected
    assert f"Off for want of permission: {feature}." in helm.run(
        "install", "x", CHART, "--dry-run=client", *helm.given({"rbac.without": [feature]})
    )


def _profile(**profile: str) -> dict[str, Any]:
    return {"scheduler.config": {"profiles": [{"schedulerName": "a"}, profile]}}


REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        {"scheduler.schedulerNames": ["moorage", "default-scheduler"]},
        "scheduler.schedulerNames: default-scheduler is refused",
    ),
    (_profile(), "scheduler.config.profiles[1].schedulerName: default-scheduler (the default"),
    (_profile(schedulerName="default-scheduler"), "scheduler.config.profiles[1].schedulerName"),
    ({"scheduler.config": {"extenders": []}}, "scheduler.config.profiles: must be given"),
    (
        {"scheduler.extraArgs": ["--scheduler-name=default-scheduler"]},
        "scheduler.extraArgs[0]: --scheduler-name is set by scheduler.schedulerNames",
    ),
    (
        {"scheduler.extraArgs": ["-v", "--config", "x"]},
        "scheduler.extraArgs[1]: --config is set by scheduler.config",
    ),
    (
        {"scheduler.extraEnv": [{"name": "MOORAGE_SCHEDULER_NAME", "value": "default-scheduler"}]},
        "scheduler.extraEnv[0]: MOORAGE_SCHEDULER_NAME is set by",
    ),
    (
        {"scheduler.leaderElection.enabled": False},
        "scheduler.leaderElection.enabled: 2 replicas need leader election",
    ),
    (
        {"rbac.without": ["binding"]},
        'rbac.without[0]: there is no optional feature "binding"; there are: preemption',
    ),
    ({"serviceAccount.create": False}, "serviceAccount.name: must name an account"),
    (
        {"extender.enabled": True, "extender.bind.enabled": True},
        "extender.bind.enabled: needs mutual TLS",
    ),
    ({"extender.tls.clientCA": True}, "extender.tls.clientCA: needs extender.tls.secretName"),
    (
        {"extender.enabled": True, "extender.writeStatus": True},
        "extender.writeStatus: scheduler.replicas is 2",
    ),
    ({"scheduler.replica": 3}, "additional properties 'replica' not allowed"),
    ({"scheduler.replicas": "three"}, "at '/scheduler/replicas': got string, want integer"),
    ({"scheduler.listen.port": 0}, "at '/scheduler/listen/port'"),
    ({"image.digest": "sha256:short"}, "at '/image/digest'"),
    ({"extender.prefix": "scheduler"}, "at '/extender/prefix'"),
    ({"schedulerName": "moorage"}, "additional properties 'schedulerName' not allowed"),
    ({"securityContext.privileged": True}, "additional properties 'privileged' not allowed"),
]


@pytest.mark.parametrize(("values", "text"), REFUSED, ids=[text[:40] for _, text in REFUSED])
def test_what_cannot_be_is_refused_and_named(helm: Helm, values: dict[str, Any], text: str) -> None:
    with pytest.raises(HelmError) as refusal:
        helm.template(values)
    assert text in str(refusal.value)


def test_the_definitions_are_those_of_the_folder_and_stay_when_wanted(helm: Helm) -> None:
    sources = [yaml.safe_load(path.read_text()) for path in sorted((CHART / "files" / "crds").glob("*.yaml"))]
    assert len(sources) == 2
    for keep in (True, False):
        made = [o for o in helm.template({"crds.keep": keep}) if o["kind"] == "CustomResourceDefinition"]
        assert [crd["spec"] for crd in made] == [crd["spec"] for crd in sources]
        kept = {(crd["metadata"].get("annotations") or {}).get("helm.sh/resource-policy") for crd in made}
        assert kept == {"keep" if keep else None}


def test_names_stay_short_enough(helm: Helm) -> None:
    objects = helm.template({"extender.enabled": True}, name="a" * 53, namespace="b" * 63)
    assert (
        max(len(obj["metadata"]["name"]) for obj in objects if obj["kind"] != "CustomResourceDefinition")
        <= 120
    )
    for obj in objects:
        if obj["kind"] in ("Service", "Deployment"):
            assert len(obj["metadata"]["name"]) <= 63


def test_the_notes_name_a_scheduler_that_there_is(helm: Helm) -> None:
    def notes(values: Any) -> str:
        return helm.run("install", "x", CHART, "--dry-run=client", *helm.given(values))

    assert '"schedulerName": "moorage"' in notes({})
    assert '"schedulerName": "one"' in notes(VALUES / "minimal.yaml")
    assert '"schedulerName": "moorage"' in notes(VALUES / "everything.yaml")
    assert "extender --print-config" in notes(VALUES / "extender.yaml")


PRINTED: list[dict[str, Any]] = [
    {},
    {"extender.service": {"clusterIP": "10.0.200.7"}, "extender.prefix": "/policies", "extender.full": True},
    {"extender.service": {"clusterIP": "fd00::7"}, "extender.listen": {"host": "::", "port": 9443}},
    {"extender.service": {"type": "NodePort", "nodePort": 30123}},
    {"extender.tls": {"secretName": "moorage-extender-tls"}},
    {"extender.tls": {"secretName": "moorage-extender-tls", "clientCA": True}},
    {
        "extender.tls": {"secretName": "moorage-extender-tls", "clientCA": True},
        "extender.bind": {"enabled": True, "schedulerNames": ["default-scheduler", "other"]},
    },
    {"extender.writeStatus": True, "scheduler.replicas": 0},
]


@pytest.mark.parametrize("given", PRINTED, ids=lambda given: ", ".join(given) or "default")
def test_notes_and_printed_configuration_agree(helm: Helm, given: dict[str, Any]) -> None:
    """The notes' command prints a configuration for the release, and a command that would install just this release."""
    values = {"extender.enabled": True, **given}
    notes = helm.run("install", "moorage", CHART, "--dry-run=client", *helm.given(values))
    (command,) = re.findall(r"^ *moorage (extender --print-config (?:.*\\\n)*.*)$", notes, re.MULTILINE)
    arguments = shlex.split(command.replace("\\\n", " ").replace("$ADDRESS", "10.0.0.9"))
    printed = CliRunner().invoke(main, arguments)
    assert printed.exit_code == 0, printed.output
    (extender,) = yaml.safe_load(printed.output)["extenders"]
    url = urlsplit(extender["urlPrefix"])

    def made(options: Sequence[str]) -> list[Obj]:
        text = helm.run("template", "moorage", CHART, "--namespace", "moorage", *options)
        return [obj for obj in yaml.load_all(text, yaml.CSafeLoader) if obj]

    mine = made(helm.given(values))
    service = only(mine, "Service", "moorage-extender")["spec"]
    (port,) = service["ports"]
    assert url.port == port.get("nodePort", port["port"])
    assert url.hostname == service.get("clusterIP", "10.0.0.9")
    tls = extender.get("tlsConfig", {})
    clients = given.get("extender.tls", {}).get("clientCA", False)
    assert (url.scheme == "https", "certFile" in tls) == ("extender.tls" in given, clients)
    assert ("bindVerb" in extender) == ("extender.bind" in given)

    comments = "".join(f"{line[2:]}\n" for line in printed.output.splitlines() if line.startswith("#"))
    (install,) = re.findall(r"^ *helm (upgrade (?:.*\\\n)*.*)$", comments, re.MULTILINE)
    words = shlex.split(install.replace("\\\n", " "))
    theirs = made(words[words.index("--set") :])
    if "nodePort" not in port:
        service.setdefault("clusterIP", "10.0.0.9")  # what the API server had given
    for kind in ("Service", "Deployment"):
        assert only(theirs, kind, "moorage-extender") == only(mine, kind, "moorage-extender")
    assert names_of(theirs) == names_of(mine)


def names_of(objects: list[Obj]) -> set[tuple[str, str]]:
    return {(obj["kind"], obj["metadata"]["name"]) for obj in objects}


def documented() -> list[Any]:
    """The YAML in docs/install.md."""
    text = (CHART.parents[1] / "docs" / "install.md").read_text()
    found = re.findall(r"^( *)```yaml\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)
    return [yaml.safe_load(textwrap.dedent(block)) for _, block in found]


def test_what_the_documentation_shows_works(helm: Helm) -> None:
    values, static_pod = documented()
    objects = helm.template(values)
    assert only(objects, "ServiceMonitor")["metadata"]["labels"]["release"] == "prometheus"
    (container,) = only(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["image"].startswith("registry.example.com/platform/moorage:")
    (container,) = static_pod["spec"]["containers"]
    assert parsed(container["args"])["scheduler_name"] == ("default-scheduler",)
    mounted = {volume["name"] for volume in static_pod["spec"]["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == mounted
