"""The part of a pod's spec that scheduling reads, from JSON to ``PodSpec``."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import astuple
from typing import Any, Final

from moorage.adapters.kube.fields import INT64, PORTS, Reader
from moorage.adapters.kube.pod_affinity import read_pod_affinity
from moorage.adapters.kube.pod_requests import requests_by_spec
from moorage.adapters.kube.selectors import read_node_affinity
from moorage.adapters.kube.sharing import Sharing
from moorage.adapters.kube.spread import read_spread
from moorage.core.model.pod import HostPort, PodSpec
from moorage.core.model.taint import Toleration

DEFAULT_SCHEDULER: Final = "default-scheduler"
_SPREAD: Final = "topologySpreadConstraints"


def read_pod_spec(spec: Mapping[str, Any], reader: Reader, sharing: Sharing | None = None) -> PodSpec:
    """Read a pod's spec; whatever is wrong is in ``reader.problems`` and in the result's ``invalid``.

    With ``sharing``, specs that differ (those of a DaemonSet's pods, each tied to its node) still share what
    they have in common.
    """
    sharing = sharing or Sharing(capacity=64)
    affinity = reader.mapping(spec.get("affinity"), "spec.affinity")
    required, preferred = read_node_affinity(
        affinity.get("nodeAffinity"), "spec.affinity.nodeAffinity", reader
    )
    images = tuple(_images(spec, reader))
    requests = requests_by_spec(spec, reader)
    node_selector = reader.text_map(spec.get("nodeSelector"), "spec.nodeSelector")
    return PodSpec(
        scheduler_name=sys.intern(
            reader.text(spec.get("schedulerName"), "spec.schedulerName") or DEFAULT_SCHEDULER
        ),
        priority=reader.whole(spec.get("priority"), "spec.priority"),
        priority_class=sys.intern(reader.text(spec.get("priorityClassName"), "spec.priorityClassName")),
        preemption_policy=sys.intern(
            reader.text(spec.get("preemptionPolicy"), "spec.preemptionPolicy") or "PreemptLowerPriority"
        ),
        requests=sharing.under(
            ("requests", *requests.amounts.items(), *astuple(requests)[1:]), lambda: requests
        ),
        node_selector=sharing.under(("text", *node_selector.items()), lambda: node_selector),
        required=sharing.value(required),
        preferred=sharing.value(preferred),
        pod_affinity=sharing.value(read_pod_affinity(affinity, "spec.affinity", reader)),
        spread=sharing.value(tuple(read_spread(spec.get(_SPREAD), f"spec.{_SPREAD}", reader))),
        tolerations=sharing.value(tuple(_tolerations(spec, reader))),
        host_ports=sharing.value(tuple(_host_ports(spec, reader))),
        images=sharing.value(images),
        required_features=sharing.value(tuple(_required_features(spec, reader))),
        unsupported=sharing.value(tuple(_unsupported(spec, reader))),
        invalid=tuple(f"{path}: {message}" for path, message in reader.problems),
    )


def relevant_parts(spec: Mapping[str, Any]) -> list[Any]:
    """Everything that ``read_pod_spec`` reads of a well-formed spec, and little else.

    Pods whose parts are equal share one ``PodSpec``.  What differs from pod to pod of one template stays
    out: the node, the host name, gates, the generated name of the service account's token volume.
    Raises TypeError, AttributeError or the like for a spec that is not well-formed.
    """
    return [
        spec.get("schedulerName"),
        spec.get("priority"),
        spec.get("priorityClassName"),
        spec.get("preemptionPolicy"),
        spec.get("resources"),
        spec.get("overhead"),
        spec.get("nodeSelector"),
        spec.get("affinity"),
        spec.get("tolerations"),
        spec.get("topologySpreadConstraints"),
        spec.get("resourceClaims") is not None,
        spec.get("schedulingGroup") is not None or spec.get("workloadRef") is not None,
        spec.get("hostNetwork"),
        spec.get("hostUsers"),
        [_container_parts(container) for container in spec.get("containers") or ()],
        [_container_parts(container) for container in spec.get("initContainers") or ()],
        any(_mounts_by_options(container) for container in spec.get("ephemeralContainers") or ()),
        [volume["image"] for volume in spec.get("volumes") or () if "image" in volume],
    ]


def _container_parts(container: Mapping[str, Any]) -> list[Any]:
    return [
        container.get("name"),
        container.get("image"),
        container.get("resources"),
        container.get("ports"),
        container.get("restartPolicy"),
        container.get("restartPolicyRules"),
        _mounts_by_options(container),
    ]


def _mounts_by_options(container: Mapping[str, Any]) -> bool:
    return any(mount.get("bindMountOptions") for mount in container.get("volumeMounts") or ())


def _tolerations(spec: Mapping[str, Any], reader: Reader) -> Iterator[Toleration]:
    for path, item in reader.objects(spec.get("tolerations"), "spec.tolerations"):
        reader.whole(item.get("tolerationSeconds"), f"{path}.tolerationSeconds", INT64)
        yield Toleration(
            reader.text(item.get("key"), f"{path}.key"),
            reader.text(item.get("operator"), f"{path}.operator") or "Equal",
            reader.text(item.get("value"), f"{path}.value"),
            reader.text(item.get("effect"), f"{path}.effect"),
        )


def _host_ports(spec: Mapping[str, Any], reader: Reader) -> Iterator[HostPort]:
    """Ports taken on the node by sidecars and containers; other init containers end before the pod runs."""
    host_network = reader.flag(spec.get("hostNetwork"), "spec.hostNetwork")
    for key in ("initContainers", "containers"):
        for path, container in reader.objects(spec.get(key), f"spec.{key}"):
            for where, port in reader.objects(container.get("ports"), f"{path}.ports"):
                number = reader.whole(port.get("hostPort"), f"{where}.hostPort", PORTS)
                inside = reader.whole(port.get("containerPort"), f"{where}.containerPort", PORTS)
                ip = reader.text(port.get("hostIP"), f"{where}.hostIP") or "0.0.0.0"  # noqa: S104
                protocol = reader.text(port.get("protocol"), f"{where}.protocol") or "TCP"
                if host_network:
                    number = number or inside
                if number and (key == "containers" or container.get("restartPolicy") == "Always"):
                    yield HostPort(ip, protocol, number)


def _images(spec: Mapping[str, Any], reader: Reader) -> Iterator[str]:
    for key in ("initContainers", "containers"):
        for path, container in reader.objects(spec.get(key), f"spec.{key}"):
            yield normalized_image(reader.text(container.get("image"), f"{path}.image"))
    for path, volume in reader.objects(spec.get("volumes"), "spec.volumes"):
        if volume.get("image") is not None:
            image = reader.mapping(volume["image"], f"{path}.image")
            yield normalized_image(reader.text(image.get("reference"), f"{path}.image.reference"))


def normalized_image(name: str) -> str:
    """The image's name with the tag that is meant when none is written."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"


def _required_features(spec: Mapping[str, Any], reader: Reader) -> Iterator[str]:
    """Features a node must declare for this pod (``status.declaredFeatures``), by name.

    Source of the rules: ``InferForScheduling`` of each feature in component-helpers' ``nodedeclaredfeatures``; other
    features matter to updates of a pod only.
    """
    containers = {
        key: list(reader.objects(spec.get(key), f"spec.{key}"))
        for key in ("initContainers", "containers", "ephemeralContainers")
    }
    rules = (
        rule
        for key in ("initContainers", "containers")
        for path, container in containers[key]
        for _, rule in reader.objects(container.get("restartPolicyRules"), f"{path}.restartPolicyRules")
    )
    if any(rule.get("action") == "RestartAllContainers" for rule in rules):
        yield "RestartAllContainersOnContainerExits"
    if spec.get("hostNetwork") is True and spec.get("hostUsers") is False:
        yield "UserNamespacesHostNetworkSupport"
    mounts = (
        mount
        for found in containers.values()
        for path, container in found
        for _, mount in reader.objects(container.get("volumeMounts"), f"{path}.volumeMounts")
    )
    if any(mount.get("bindMountOptions") for mount in mounts):
        yield "VolumeBindMountOptions"


def _unsupported(spec: Mapping[str, Any], reader: Reader) -> Iterator[str]:
    if reader.sequence(spec.get("resourceClaims"), "spec.resourceClaims"):
        yield "resource claims"
    if spec.get("schedulingGroup") is not None or spec.get("workloadRef") is not None:
        yield "a pod group"
