"""Decision cases about declared features of nodes, and about resources that DeviceClasses name but nodes advertise.

Nodes declare some of the features that pods may need, and others; some nodes are full of pods that could go, since a
node without the feature must not be thought of for that.  Every node advertises the resource of a DeviceClass: only
then do kube-scheduler, which would allocate devices, and Moorage, which refuses to, mean the same.  Mounts with options
are left out: by default the API server, and so the oracle, drops that field.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

Json = dict[str, Any]
Choose = Callable[[int], int]

RESTART: Final = "RestartAllContainersOnContainerExits"
USERS: Final = "UserNamespacesHostNetworkSupport"
MOUNTS: Final = "VolumeBindMountOptions"
_GPU: Final = "example.com/gpu"
_IMPLICIT: Final = "deviceclass.resource.kubernetes.io/fast"
_FEATURES: Final = (RESTART, USERS, MOUNTS, "ExtendWebSocketsToKubelet", "SomethingNew/ofTomorrow", "AAA")
_ACTIONS: Final = ("Restart", "RestartAllContainers")


def feature_case(choose: Choose) -> Json:
    """A case; ``choose`` gives a number below its argument, 0 being the simplest."""
    devices = choose(3) == 2
    names = [f"n{i}" for i in range(1 + choose(6))]
    objects = [_node(choose, name, devices=devices) for name in names]
    if devices:
        objects += [_device_class(choose, name) for name in ("fast", "slow")[: 1 + choose(2)]]
    for index in range(choose(8)):
        pod = _pod(choose, f"b{index}", devices=devices)
        pod["spec"] |= {"nodeName": names[choose(len(names))], "priority": choose(2)}
        pod["status"] = {"startTime": f"2026-01-01T00:{index:02}:00Z"}
        objects.append({"apiVersion": "v1", "kind": "Pod", **pod})
    pods = [_pod(choose, f"p{i}", devices=devices) for i in range(1 + choose(3))]
    for pod in pods:
        pod["spec"]["priority"] = (0, 10)[choose(2)]
    return {"objects": objects, "pods": pods}


def _node(choose: Choose, name: str, *, devices: bool) -> Json:
    declared = sorted(feature for feature in _FEATURES if choose(5) < 3)
    allocatable = {"cpu": ("4", "2", "1")[choose(3)], "memory": "8Gi", "pods": ("110", "2")[choose(2)]}
    if devices:
        allocatable |= {_GPU: str(1 + choose(4)), _IMPLICIT: str(1 + choose(2))}
    status = {"allocatable": allocatable} | ({"declaredFeatures": declared} if declared else {})
    node: Json = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}
    if choose(6) == 5:
        node["spec"] = {"unschedulable": True}
    return node


def _device_class(choose: Choose, name: str) -> Json:
    found: Json = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}}
    found["metadata"]["creationTimestamp"] = f"2026-01-0{1 + choose(2)}T00:00:00Z"
    found["spec"] = {"extendedResourceName": _GPU} if choose(3) else {}
    return found


def _pod(choose: Choose, name: str, *, devices: bool) -> Json:
    requests: Json = {"cpu": ("100m", "1", "500m", "2")[choose(4)]}
    if devices and choose(3):
        requests |= {_GPU: str(choose(3))} | ({_IMPLICIT: "1"} if choose(3) == 2 else {})
    main: Json = {"name": "main", "image": "app", "resources": {"requests": requests}}
    if devices:
        main["resources"]["limits"] = {key: requests[key] for key in requests if key != "cpu"}
    first: Json = {"name": "first", "image": "app"}
    spec: Json = {"containers": [main]}
    for container in (main, first):
        if choose(4) == 3:
            codes = {"operator": "In", "values": [42]}
            rule = {"action": _ACTIONS[choose(2)], "exitCodes": codes}
            container |= {"restartPolicy": "Never", "restartPolicyRules": [rule]}
    if len(first) > 2:
        spec["initContainers"] = [first]
    if choose(3) == 2:
        spec |= {"hostNetwork": choose(4) > 0, "hostUsers": choose(4) == 3}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}
