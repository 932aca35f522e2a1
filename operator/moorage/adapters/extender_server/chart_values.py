"""The values of the Helm chart by which it deploys an extender where kube-scheduler looks for one."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit

#: As in ``charts/moorage/values.yaml``.
_PORT, _PREFIX, _SCHEDULER_NAMES = 10270, "/scheduler", ("default-scheduler",)
#: Ports that the API server gives to Services of type NodePort, unless it was told of others.
NODE_PORTS = range(30000, 32768)
SECRET = "moorage-extender-tls"  # noqa: S105 - its name


def chart_values(
    url: str,
    *,
    bind: bool = False,
    full: bool = False,
    write_status: bool = False,
    client_certificates: bool = False,
    scheduler_names: Sequence[str] = (),
) -> dict[str, str]:
    """Values by their paths, as texts for ``--set``; those that are the chart's defaults are left out.

    ``url`` is one that ``check_url`` takes: an address and a port of a NodePort mean the nodes', any other address is
    the Service's own, and of a name nothing is known but the port.
    """
    parts = urlsplit(url)
    host, port, prefix = parts.hostname or "", parts.port or _PORT, parts.path.rstrip("/") or "/"
    values = {"extender.enabled": "true"}
    if port in NODE_PORTS:
        values |= {"extender.service.type": "NodePort", "extender.service.nodePort": str(port)}
    else:
        if _is_address(host):
            values["extender.service.clusterIP"] = host
        if port != _PORT:
            values["extender.listen.port"] = str(port)
    if ":" in host:
        values["extender.listen.host"] = "::"
    if prefix != _PREFIX:
        values["extender.prefix"] = prefix
    if full:
        values["extender.full"] = "true"
    if write_status:
        values |= {"extender.writeStatus": "true", "scheduler.replicas": "0"}
    if parts.scheme == "https":
        values["extender.tls.secretName"] = SECRET
        if bind or client_certificates:
            values["extender.tls.clientCA"] = "true"
    if bind:
        values["extender.bind.enabled"] = "true"
        if scheduler_names and tuple(scheduler_names) != _SCHEDULER_NAMES:
            values["extender.bind.schedulerNames"] = "{" + ",".join(scheduler_names) + "}"
    return values


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def chart_steps(url: str, values: dict[str, str]) -> list[str]:
    """How to install it, as lines of text; the command among them can be copied as it is."""
    certified = "extender.tls.secretName" in values
    end = "," if certified else ":"
    fixed = values.get("extender.service.clusterIP")
    lines = [
        f"Helm: install the extender so that it answers at this URL (or change the release that is there){end}"
    ]
    if certified:
        authority = " --from-file=ca.crt" if "extender.tls.clientCA" in values else ""
        lines += [
            f"with its certificate, which must be for {urlsplit(url).hostname}:",
            f"  kubectl -n moorage create secret generic {SECRET} --from-file=tls.crt --from-file=tls.key{authority}",
        ]
    lines.append("  helm upgrade --install moorage charts/moorage --namespace moorage --create-namespace \\")
    options = [f"    --set '{path}={value}'" for path, value in values.items()]
    lines += [f"{option} \\" for option in options[:-1]] + options[-1:]
    if fixed:
        lines += [
            f"{fixed} must be a free address of the cluster's Services, or the one that the Service has already:",
            "  kubectl -n moorage get service moorage-extender -o jsonpath='{.spec.clusterIP}'",
        ]
    lines += ["See it ready:", "  kubectl -n moorage rollout status deployment/moorage-extender"]
    if "extender.bind.enabled" in values:
        lines += [
            "While no replica is there, kube-scheduler binds nothing, their replacements included: keep two, on",
            "different nodes, and take --config away if all are lost.",
        ]
    return lines
