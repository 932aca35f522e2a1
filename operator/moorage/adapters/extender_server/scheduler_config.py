"""The KubeSchedulerConfiguration by which a kube-scheduler calls the extender, and what to do with it."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import yaml

from moorage.adapters.extender_server.chart_values import chart_steps, chart_values

#: Where kubeadm keeps what its static pods read.
_FILE = "/etc/kubernetes/moorage-scheduler.yaml"
#: Below that a container needs a capability, which the chart's has not.
_LEAST_PORT = 1024
_SCHEDULER_CONF = "/etc/kubernetes/scheduler.conf"


class Way(StrEnum):
    """How the kube-scheduler that calls us is deployed; ``HELM``: by kubeadm, and we by the chart."""

    KUBEADM = "kubeadm"
    HELM = "helm"
    K3S = "k3s"
    CONFIGMAP = "configmap"
    PLAIN = "plain"

    @property
    def host_network(self) -> bool:
        """Whether it is on its node's network, and resolves names as the node does."""
        return self in (Way.KUBEADM, Way.HELM, Way.K3S)


class BadUrl(ValueError):
    """kube-scheduler could not call this; the text says why and what to give instead."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the configuration is to be like.  ``timeout`` in seconds; files are as the kube-scheduler sees them."""

    url: str
    way: Way = Way.PLAIN
    bind: bool = False
    whole_nodes: bool = False
    weight: int = 5
    timeout: float = 5.0
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    #: What else the chart is to be told of, for ``Way.HELM``.
    full: bool = False
    write_status: bool = False
    scheduler_names: tuple[str, ...] = ()


def check_url(url: str, way: Way, *, bind: bool = False) -> None:
    """Raises BadUrl."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError as error:
        raise BadUrl(f"url: {url!r} is none: {error}") from None
    if parts.scheme not in ("http", "https") or not host:
        raise BadUrl(f"url: must be http://HOST:PORT/PREFIX or https://…, not {url!r}")
    if parts.query or parts.fragment:
        raise BadUrl("url: kube-scheduler adds /filter and so on to it, so it must end with the path")
    if way.host_network and _is_service(host):
        raise BadUrl(
            f"url: {host} is the name of a Service, which only the cluster's DNS knows; this kube-scheduler is on its "
            "node's network and asks the node's DNS, so it would never find it. Run the extender beside each "
            "kube-scheduler and give http://127.0.0.1:PORT/PREFIX, or give the ClusterIP of the Service, with TLS "
            "(or, if that kube-scheduler runs in the pod network with dnsPolicy ClusterFirst, --way configmap)"
        )
    if way is Way.HELM and _is_loopback(host):
        raise BadUrl(
            f"url: {host} is the machine itself, and the chart's extender is in the pod network: give the ClusterIP of "
            "its Service, or a node's address and a NodePort; for one beside each kube-scheduler, --way kubeadm"
        )
    if way is Way.HELM and (parts.port or 0) < _LEAST_PORT:
        raise BadUrl(f"url: name the port, {_LEAST_PORT} or above, as in http://10.96.0.77:10270/scheduler")
    if bind and parts.scheme == "http" and not _is_loopback(host):
        raise BadUrl(
            f"url: the extender binds for another machine only over TLS with client certificates: https://{host}…, "
            "or run it beside kube-scheduler at http://127.0.0.1:PORT/PREFIX"
        )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_service(host: str) -> bool:
    """NAME, NAME.NAMESPACE.svc, or the same with the cluster's domain."""
    try:
        ip_address(host)
    except ValueError:
        labels = host.rstrip(".").split(".")
        return host != "localhost" and (
            len(labels) == 1 or "svc" in labels[1:] or labels[-2:] == ["cluster", "local"]
        )
    return False


def configuration(wanted: Wanted) -> dict[str, Any]:
    """The KubeSchedulerConfiguration.  Raises BadUrl."""
    check_url(wanted.url, wanted.way, bind=wanted.bind)
    extender: dict[str, Any] = {
        "urlPrefix": wanted.url.rstrip("/"),
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "preemptVerb": "preempt",
        "weight": wanted.weight,
        "nodeCacheCapable": not wanted.whole_nodes,
        "ignorable": not wanted.bind,
        "httpTimeout": f"{wanted.timeout:g}s",
    }
    if wanted.bind:
        extender["bindVerb"] = "bind"
    if urlsplit(wanted.url).scheme == "https":
        extender["enableHTTPS"] = True
        extender["tlsConfig"] = {
            "insecure": False,
            "caFile": wanted.ca_file or "/etc/kubernetes/pki/moorage/ca.crt",
        }
        if wanted.cert_file or wanted.bind:
            extender["tlsConfig"] |= {
                "certFile": wanted.cert_file or "/etc/kubernetes/pki/moorage/client.crt",
                "keyFile": wanted.key_file or "/etc/kubernetes/pki/moorage/client.key",
            }
    result: dict[str, Any] = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
    }
    if wanted.way in (Way.KUBEADM, Way.HELM):
        result["clientConnection"] = {"kubeconfig": _SCHEDULER_CONF}
    if wanted.way is Way.K3S:
        result["clientConnection"] = {"kubeconfig": "/var/lib/rancher/k3s/server/cred/scheduler.kubeconfig"}
    return result | {
        "leaderElection": {"leaderElect": True},
        "percentageOfNodesToScore": 100,
        "extenders": [extender],
    }


_WHY = """\
percentageOfNodesToScore 100: kube-scheduler would show only a part of the nodes to an extender.
weight {weight}: without one prioritize is never called; a node that the policies like most gets {points} points more.
nodeCacheCapable {cache}: {names}
{ignorable}
httpTimeout {timeout:g}s: how long one pod waits for an extender that does not answer, and all behind it."""
_IGNORABLE = (
    "ignorable true: while the extender is away pods are placed without the policies, instead of not at all."
)
_NOT_IGNORABLE = (
    "ignorable false: kube-scheduler binds by itself what an ignorable extender refuses to bind, so limits, pools and "
    "keepFree would not hold. The price: while the extender is away no pod is bound."
)
_BEST_EFFORT = (
    "Without the bind verb limits, pools and keepFree are best effort: pods placed within the same moment are judged "
    "before the extender has seen each other bound. --enable-bind, here and there, makes them exact."
)


def text(wanted: Wanted) -> str:
    """The configuration with its reasons, and what to do with it; one YAML document.  Raises BadUrl."""
    config = configuration(wanted)
    why = _WHY.format(
        weight=wanted.weight,
        points=wanted.weight * 100,
        cache=str(not wanted.whole_nodes).lower(),
        names="whole nodes are sent, which costs both sides more, and 32 MiB (--max-body) of them at most are read."
        if wanted.whole_nodes
        else "names are enough.",
        ignorable=_NOT_IGNORABLE if wanted.bind else _IGNORABLE,
        timeout=wanted.timeout,
    )
    remarks = why.splitlines() + ([] if wanted.bind else [_BEST_EFFORT])
    lines = [row for remark in remarks for row in _wrapped(remark)]
    lines += ["", *_steps(wanted)]
    head = "".join(f"# {line}".rstrip() + "\n" for line in lines)
    document = yaml.safe_dump(config, sort_keys=False)
    if wanted.way is Way.CONFIGMAP:
        data = textwrap.indent(document, "    ")
        document = (
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: moorage-scheduler-config\n  namespace: kube-system\n"
            f"data:\n  config.yaml: |\n{data}"
        )
    return head + document


def _steps(wanted: Wanted) -> list[str]:
    told = _STEPS[Way.KUBEADM if wanted.way is Way.HELM else wanted.way].splitlines()
    if wanted.way in (Way.KUBEADM, Way.HELM) and urlsplit(wanted.url).scheme == "https":
        told.insert(
            -1, "The files of tlsConfig need a mount like that, too: kubeadm mounts nothing of pki there."
        )
    if wanted.way is not Way.HELM:
        return told
    values = chart_values(
        wanted.url,
        bind=wanted.bind,
        full=wanted.full,
        write_status=wanted.write_status,
        client_certificates=bool(wanted.cert_file),
        scheduler_names=wanted.scheduler_names,
    )
    return [
        *chart_steps(wanted.url, values),
        "Then kube-scheduler, here as kubeadm has it (else see --way).",
        *told,
    ]


def _wrapped(remark: str) -> list[str]:
    return textwrap.wrap(remark, 110, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False)


_STEPS = {
    Way.KUBEADM: f"""\
kubeadm: start the extender first, and see it ready (moorage extender --check --url …). Then, on each control plane
node, write this to {_FILE} and change /etc/kubernetes/manifests/kube-scheduler.yaml:
  spec.containers[0].command:      - --config={_FILE}
  spec.containers[0].volumeMounts: - {{name: moorage, mountPath: {_FILE}, readOnly: true}}
  spec.volumes:                    - {{name: moorage, hostPath: {{path: {_FILE}, type: File}}}}
For later kubeadm upgrades put the same into extraArgs and extraVolumes of scheduler in the ClusterConfiguration.
To go back: take --config away first, then stop the extender.""",
    Way.K3S: """\
k3s: start the extender first, and see it ready. Then write this to /etc/rancher/k3s/moorage-scheduler.yaml on each
server, and add to /etc/rancher/k3s/config.yaml:
  kube-scheduler-arg: ["config=/etc/rancher/k3s/moorage-scheduler.yaml"]
To go back: take that away first, then stop the extender.""",
    Way.CONFIGMAP: """\
A kube-scheduler in a pod of its own: start the extender first, and see it ready. Then apply this, mount it there at
/etc/moorage, and start kube-scheduler with --config=/etc/moorage/config.yaml.
To go back: take --config away first, then stop the extender.""",
    Way.PLAIN: """\
Start the extender first, and see it ready; then start kube-scheduler with --config=FILE. It also needs
clientConnection.kubeconfig outside a cluster: with --config the flag --kubeconfig is not looked at.
To go back: take --config away first, then stop the extender.""",
}
