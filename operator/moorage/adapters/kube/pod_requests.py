"""What a pod takes on a node: the one formula, used for fit, score, usage and what-ifs.

It is the formula of the Kubernetes API (``resource.PodRequests`` in component-helpers):

* containers add up;
* a restartable init container (a sidecar) adds to them, and to every init container after it;
* an init container needs its own amount next to the sidecars started before it, and the pod needs the largest
  of these sums if that is more than what its containers need together;
* pod-level ``spec.resources`` replace the sums for cpu, memory and huge pages; the pod's overhead comes on top;
* while a resize is under way, a pod on a node counts as the largest of what its spec wants, what the node has
  allocated and what is in force; a resize that the node found infeasible leaves the spec out.

Nodes are also scored by what pods *roughly* need, where a container that names no cpu (or memory) counts as
100m (200Mi): see the other fields of ``Requests``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from moorage.adapters.kube.fields import Reader
from moorage.adapters.kube.resource_lists import Millis, base_units, read_list
from moorage.core.model.resources import CPU, DEFAULT_MEMORY, DEFAULT_MILLI_CPU, MEMORY, Requests

_SCORING_DEFAULTS: Final[Millis] = {CPU: DEFAULT_MILLI_CPU, MEMORY: DEFAULT_MEMORY * 1000}


@dataclass(frozen=True, slots=True)
class _Container:
    """A container and what its spec requests."""

    name: str
    requests: Millis
    sidecar: bool = False


@dataclass(frozen=True, slots=True)
class _Footprint:
    """The parts of a pod's spec that the formula reads."""

    containers: tuple[_Container, ...]
    init_containers: tuple[_Container, ...]
    pod_level: Millis
    overhead: Millis


#: What one container counts as, seen from the spec, from the allocation or from what is in force.
_View = Callable[[_Container], Millis]


def requests_by_spec(spec: Mapping[str, Any], reader: Reader) -> Requests:
    """What a pod with this spec asks for before it is on a node."""
    footprint = _read(spec, reader)
    return _requests(footprint, lambda missing: _total(footprint, _by_spec, missing), footprint.pod_level)


def requests_on_node(spec: Mapping[str, Any], status: Mapping[str, Any], reader: Reader) -> Requests:
    """What a pod on a node counts as, with regard to a resize under way."""
    footprint = _read(spec, reader)
    infeasible = _resize_infeasible(status, reader)
    allocated, actual = _read_statuses(status, reader)
    whole_allocated = _optional_list(reader, status.get("allocatedResources"), "status.allocatedResources")
    whole = status.get("resources")
    whole_actual = _requests_of(reader, whole, "status.resources")

    def by_allocation(container: _Container) -> Millis:
        amounts = allocated.get(container.name)
        if amounts is not None:
            return amounts
        return {} if infeasible else container.requests

    def by_actual(container: _Container) -> Millis:
        amounts = actual.get(container.name)
        return amounts if amounts is not None else by_allocation(container)

    def totals(missing: Millis) -> Millis:
        views = [] if infeasible else [_total(footprint, _by_spec, missing)]
        if whole_allocated is not None and whole_actual is not None:
            views += [whole_actual, whole_allocated]  # the kubelet's own sums, over all containers
        else:
            views += [_total(footprint, by_actual, missing), _total(footprint, by_allocation, missing)]
        return _largest(views)

    pod_level = footprint.pod_level
    if pod_level and whole is not None:
        wanted = {} if infeasible else pod_level
        pod_level = _supported(_largest([wanted, whole_actual or {}, whole_allocated or {}]))
    return _requests(footprint, totals, pod_level)


def is_pod_level(name: str) -> bool:
    """Whether ``spec.resources`` of a pod may set this resource for the pod as a whole."""
    return name in (CPU, MEMORY) or name.startswith("hugepages-")


def container_total(spec: Mapping[str, Any], reader: Reader, field: str = "requests") -> Millis:
    """The containers' part of the formula, for requests or limits."""
    footprint = _read(spec, reader, field)
    return _total(footprint, _by_spec, {})


def _requests(footprint: _Footprint, totals: Callable[[Millis], Millis], pod_level: Millis) -> Requests:
    def complete(missing: Millis) -> Millis:
        return _sum([totals(missing) | pod_level, footprint.overhead])

    plain = complete({})
    # A pod-level request speaks for all containers, so there is nothing to guess for that resource.
    missing = {
        name: amount
        for name, amount in _SCORING_DEFAULTS.items()
        if not (footprint.pod_level and name in plain)
    }
    scoring = base_units(complete(missing) if missing else plain)
    cpu, memory = scoring.get(CPU, 0), scoring.get(MEMORY, 0)
    if not footprint.pod_level:
        return Requests(base_units(plain), cpu, memory)
    arriving = base_units(_sum([totals(_SCORING_DEFAULTS), footprint.overhead]))
    return Requests(base_units(plain), cpu, memory, arriving.get(CPU, 0), arriving.get(MEMORY, 0))


def _total(footprint: _Footprint, view: _View, missing: Millis) -> Millis:
    """Containers, sidecars and the largest step of the initialisation together."""
    running = [missing | view(container) for container in footprint.containers]
    sidecars: Millis = {}
    steps: list[Millis] = []
    for container in footprint.init_containers:
        amounts = missing | view(container)
        if container.sidecar:
            running.append(amounts)
            sidecars = _sum([sidecars, amounts])
            steps.append(sidecars)
        else:
            steps.append(_sum([amounts, sidecars]))
    return _largest([_sum(running), *steps])


def _by_spec(container: _Container) -> Millis:
    return container.requests


def _read(spec: Mapping[str, Any], reader: Reader, field: str = "requests") -> _Footprint:
    def containers(key: str) -> tuple[_Container, ...]:
        return tuple(
            _Container(
                reader.text(container.get("name"), f"{path}.name"),
                _optional_list(
                    reader,
                    reader.mapping(container.get("resources"), f"{path}.resources").get(field),
                    f"{path}.resources.{field}",
                )
                or {},
                sidecar=container.get("restartPolicy") == "Always",
            )
            for path, container in reader.objects(spec.get(key), f"spec.{key}")
        )

    return _Footprint(
        containers("containers"),
        containers("initContainers"),
        _supported(_requests_of(reader, spec.get("resources"), "spec.resources") or {}),
        read_list(reader, spec.get("overhead"), "spec.overhead"),
    )


def _read_statuses(status: Mapping[str, Any], reader: Reader) -> tuple[dict[str, Millis], dict[str, Millis]]:
    """Allocated and actual requests by container name, where the node has reported them."""
    allocated: dict[str, Millis] = {}
    actual: dict[str, Millis] = {}
    seen: set[str] = set()
    for key in ("containerStatuses", "initContainerStatuses"):
        for path, container in reader.objects(status.get(key), f"status.{key}"):
            name = reader.text(container.get("name"), f"{path}.name")
            if name in seen:
                continue
            seen.add(name)
            amounts = _optional_list(
                reader, container.get("allocatedResources"), f"{path}.allocatedResources"
            )
            if amounts is not None:
                allocated[name] = amounts
            amounts = _requests_of(reader, container.get("resources"), f"{path}.resources")
            if amounts is not None:
                actual[name] = amounts
    return allocated, actual


def _requests_of(reader: Reader, resources: object, path: str) -> Millis | None:
    requests = reader.mapping(resources, path).get("requests")
    return _optional_list(reader, requests, f"{path}.requests")


def _optional_list(reader: Reader, value: object, path: str) -> Millis | None:
    """None for "not reported", which is not the same as an empty list."""
    return None if value is None else read_list(reader, value, path)


def _resize_infeasible(status: Mapping[str, Any], reader: Reader) -> bool:
    for _, condition in reader.objects(status.get("conditions"), "status.conditions"):
        if condition.get("type") == "PodResizePending":
            return bool(condition.get("reason") == "Infeasible")
    return False


def _supported(amounts: Millis) -> Millis:
    return {name: amount for name, amount in amounts.items() if is_pod_level(name)}


def _sum(lists: list[Millis]) -> Millis:
    result: Millis = {}
    for amounts in lists:
        for name, amount in amounts.items():
            result[name] = result.get(name, 0) + amount
    return result


def _largest(lists: list[Millis]) -> Millis:
    result: Millis = {}
    for amounts in lists:
        for name, amount in amounts.items():
            if name not in result or amount > result[name]:
                result[name] = amount
    return result
