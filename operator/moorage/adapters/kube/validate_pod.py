"""The API server's rules for pods, as far as they concern scheduling; see ``validate``.

Wrong types are reported where the spec is read (``pod_spec``); here a quiet reader walks the same fields again,
and only rules about values are checked.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from moorage.adapters.kube.fields import Reader
from moorage.adapters.kube.pod_requests import is_pod_level
from moorage.adapters.kube.resource_lists import is_label_value, is_qualified_name, read_list
from moorage.core.model.resources import is_extended

Obj = Mapping[str, Any]

_NATIVE: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
_EFFECTS: Final = ("", "NoSchedule", "PreferNoSchedule", "NoExecute")
_LABEL_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def check_pod(obj: Obj, reader: Reader) -> None:
    """Report every value of a pod that breaks a rule."""
    quiet = Reader()
    spec = quiet.mapping(obj.get("spec"), "spec")
    _check_containers(spec, quiet, reader)
    _check_amounts(quiet.mapping(spec.get("resources"), ""), "spec.resources", quiet, reader, pod_level=True)
    _check_node_selector(spec, quiet, reader)
    affinity = quiet.mapping(spec.get("affinity"), "")
    _check_node_affinity(quiet.mapping(affinity.get("nodeAffinity"), ""), quiet, reader)
    for kind in ("podAffinity", "podAntiAffinity"):
        _check_pod_affinity(quiet.mapping(affinity.get(kind), ""), f"spec.affinity.{kind}", quiet, reader)
    _check_spread(spec, quiet, reader)
    _check_tolerations(spec, quiet, reader)
    _one_of(spec.get("preemptionPolicy"), "spec.preemptionPolicy", ("Never", "PreemptLowerPriority"), reader)
    gates = list(quiet.objects(spec.get("schedulingGates"), "spec.schedulingGates"))
    for path, gate in gates:
        name = quiet.text(gate.get("name"), path)
        if not is_qualified_name(name):
            reader.report(f"{path}.name", f"{name!r} is not a qualified name" if name else "is missing")
    if gates and spec.get("nodeName"):
        reader.report("spec.nodeName", "must not be set while there are scheduling gates")


def _check_containers(spec: Obj, quiet: Reader, reader: Reader) -> None:
    names = set()
    for key in ("containers", "initContainers"):
        for path, container in quiet.objects(spec.get(key), f"spec.{key}"):
            name = quiet.text(container.get("name"), path)
            if name and name in names:
                reader.report(f"{path}.name", f"there is a second container {name!r}")
            names.add(name)
            resources = quiet.mapping(container.get("resources"), "")
            _check_amounts(resources, f"{path}.resources", quiet, reader)
            for where, port in quiet.objects(container.get("ports"), f"{path}.ports"):
                _one_of(port.get("protocol"), f"{where}.protocol", _PROTOCOLS, reader)
                inside, outside = port.get("containerPort"), port.get("hostPort")
                if inside == 0:
                    reader.report(f"{where}.containerPort", "must be between 1 and 65535, not 0")
                if spec.get("hostNetwork") is True and inside and outside and inside != outside:
                    reader.report(f"{where}.hostPort", "must be the container's port on the host's network")


def _check_amounts(
    resources: Obj, path: str, quiet: Reader, reader: Reader, *, pod_level: bool = False
) -> None:
    requests = read_list(quiet, resources.get("requests"), f"{path}.requests")
    limits = read_list(reader, resources.get("limits"), f"{path}.limits")  # nobody else reads limits
    for field, amounts in (("requests", requests), ("limits", limits)):
        for name, millis in amounts.items():
            if pod_level and not is_pod_level(name):
                reader.report(f"{path}.{field}.{name}", "cannot be set for the pod as a whole")
            elif name not in _NATIVE and not name.startswith("hugepages-") and "/" not in name:
                reader.report(
                    f"{path}.{field}.{name}", "is no resource; other than Kubernetes' own need a domain"
                )
            elif is_extended(name) and millis % 1000:
                reader.report(f"{path}.{field}.{name}", "must be a whole number")
    for name, wanted in requests.items():
        limit = limits.get(name)
        if limit is None:
            continue
        given = resources["limits"][name]
        if wanted > limit:
            reader.report(f"{path}.requests.{name}", f"must not be more than the limit, which is {given}")
        elif wanted < limit and name not in _NATIVE:
            reader.report(f"{path}.requests.{name}", f"must be equal to the limit, which is {given}")


def _check_node_selector(spec: Obj, quiet: Reader, reader: Reader) -> None:
    for key, value in quiet.text_map(spec.get("nodeSelector"), "").items():
        if not is_qualified_name(key):
            reader.report(f"spec.nodeSelector.{key}", "is not a label key")
        if not is_label_value(value):
            reader.report(f"spec.nodeSelector.{key}", f"{value!r} is not a label value")


def _check_node_affinity(affinity: Obj, quiet: Reader, reader: Reader) -> None:
    path = "spec.affinity.nodeAffinity"
    if affinity.get(_REQUIRED) is not None:
        where = f"{path}.{_REQUIRED}.nodeSelectorTerms"
        terms = quiet.mapping(affinity[_REQUIRED], "").get("nodeSelectorTerms")
        if not quiet.sequence(terms, where):
            reader.report(where, "must have at least one term")
        for at, term in quiet.objects(terms, where):
            check_term(term, at, quiet, reader)
    for at, item in quiet.objects(affinity.get(_PREFERRED), f"{path}.{_PREFERRED}"):
        _check_weight(item.get("weight"), at, quiet, reader)
        check_term(quiet.mapping(item.get("preference"), ""), f"{at}.preference", quiet, reader)


def check_term(term: Obj, path: str, quiet: Reader, reader: Reader) -> None:
    """A term of a node selector; ``quiet`` takes the reports of what conversion reports anyway."""
    for at, item in quiet.objects(term.get("matchExpressions"), f"{path}.matchExpressions"):
        _check_key(item, at, quiet, reader)
        _check_values(item, at, quiet, reader)
    for at, item in quiet.objects(term.get("matchFields"), f"{path}.matchFields"):
        if item.get("key") != "metadata.name":
            reader.report(f"{at}.key", f"must be metadata.name, not {item.get('key')!r}")
        if item.get("operator") not in ("In", "NotIn"):
            reader.report(f"{at}.operator", f"must be In or NotIn for a field, not {item.get('operator')!r}")
        if len(quiet.sequence(item.get("values"), "")) != 1:
            reader.report(f"{at}.values", "must be exactly one value")


def _check_pod_affinity(affinity: Obj, path: str, quiet: Reader, reader: Reader) -> None:
    terms: list[tuple[str, Obj]] = list(quiet.objects(affinity.get(_REQUIRED), f"{path}.{_REQUIRED}"))
    for at, item in quiet.objects(affinity.get(_PREFERRED), f"{path}.{_PREFERRED}"):
        _check_weight(item.get("weight"), at, quiet, reader)
        terms.append((f"{at}.podAffinityTerm", quiet.mapping(item.get("podAffinityTerm"), "")))
    for at, term in terms:
        _check_topology_key(term, at, quiet, reader)
        for field in ("labelSelector", "namespaceSelector"):
            _check_label_selector(term.get(field), f"{at}.{field}", reader)


def _check_spread(spec: Obj, quiet: Reader, reader: Reader) -> None:
    for at, item in quiet.objects(spec.get("topologySpreadConstraints"), "spec.topologySpreadConstraints"):
        _check_topology_key(item, at, quiet, reader)
        skew = reader.whole(item.get("maxSkew"), f"{at}.maxSkew")
        if skew < 1 and not isinstance(item.get("maxSkew"), str):
            reader.report(f"{at}.maxSkew", "must be at least 1")
        unsatisfiable = item.get("whenUnsatisfiable") or "''"
        _one_of(unsatisfiable, f"{at}.whenUnsatisfiable", ("DoNotSchedule", "ScheduleAnyway"), reader)
        _check_label_selector(item.get("labelSelector"), f"{at}.labelSelector", reader)


def _check_tolerations(spec: Obj, quiet: Reader, reader: Reader) -> None:
    for path, item in quiet.objects(spec.get("tolerations"), "spec.tolerations"):
        operator = item.get("operator")
        _one_of(operator, f"{path}.operator", ("", "Equal", "Exists"), reader)
        _one_of(item.get("effect"), f"{path}.effect", _EFFECTS, reader)
        key = quiet.text(item.get("key"), "")
        if key and not is_qualified_name(key):
            reader.report(f"{path}.key", f"{key!r} is not a taint key")
        if not key and operator != "Exists":
            reader.report(f"{path}.operator", "must be Exists where there is no key, which means all taints")
        if operator == "Exists" and item.get("value"):
            reader.report(f"{path}.value", "must be empty with operator Exists")
        if item.get("tolerationSeconds") is not None and item.get("effect") != "NoExecute":
            reader.report(f"{path}.effect", "must be NoExecute where tolerationSeconds is set")


def _check_label_selector(value: object, path: str, reader: Reader) -> None:
    selector = reader.mapping(value, path)
    for key, text in reader.text_map(selector.get("matchLabels"), f"{path}.matchLabels").items():
        if not is_qualified_name(key) or not is_label_value(text):
            reader.report(f"{path}.matchLabels.{key}", f"{key}={text} is not a label")
    for at, item in reader.objects(selector.get("matchExpressions"), f"{path}.matchExpressions"):
        _one_of(item.get("operator") or "''", f"{at}.operator", _LABEL_OPERATORS, reader)
        _check_key(item, at, reader, reader)
        _check_values(item, at, reader, reader)


def _check_key(item: Obj, path: str, quiet: Reader, reader: Reader) -> None:
    key = quiet.text(item.get("key"), "")
    if not is_qualified_name(key):
        reader.report(f"{path}.key", f"{key!r} is not a label key" if key else "is missing")


def _check_values(item: Obj, path: str, quiet: Reader, reader: Reader) -> None:
    operator, count = item.get("operator"), len(quiet.sequence(item.get("values"), f"{path}.values"))
    if operator in ("In", "NotIn") and not count:
        reader.report(f"{path}.values", f"must have at least one value with operator {operator}")
    elif operator in ("Exists", "DoesNotExist") and count:
        reader.report(f"{path}.values", f"must be empty with operator {operator}")
    elif operator in ("Gt", "Lt") and count != 1:
        reader.report(f"{path}.values", f"must be exactly one value with operator {operator}")


def _check_weight(value: object, path: str, quiet: Reader, reader: Reader) -> None:
    if isinstance(value, int | float) and not 1 <= quiet.whole(value, "") <= 100:
        reader.report(f"{path}.weight", f"must be between 1 and 100, not {value}")


def _check_topology_key(item: Obj, path: str, quiet: Reader, reader: Reader) -> None:
    key = reader.text(item.get("topologyKey"), f"{path}.topologyKey")
    if not is_qualified_name(key):
        reader.report(f"{path}.topologyKey", f"{key!r} is not a label key" if key else "is missing")


def _one_of(value: object, path: str, allowed: Collection[str], reader: Reader) -> None:
    if value is not None and value not in tuple(allowed):
        known = ", ".join(word for word in allowed if word)
        reader.report(
            path, f"must be one of {known}, not {value!r}" if value != "''" else f"must be one of {known}"
        )
