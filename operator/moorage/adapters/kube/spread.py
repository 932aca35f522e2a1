"""Topology spread constraints, from JSON to the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from moorage.adapters.kube.fields import Reader
from moorage.adapters.kube.resource_lists import is_qualified_name
from moorage.adapters.kube.selectors import read_label_selector
from moorage.core.model.spread import SYSTEM_DEFAULTS, SpreadConstraint, SpreadDefaults

_POLICIES: Final = {"Honor": True, "Ignore": False}


def read_spread(value: object, path: str, reader: Reader) -> Iterator[SpreadConstraint]:
    """A list of constraints: ``topologySpreadConstraints`` of a pod, or ``defaultConstraints`` of a configuration."""
    for at, item in reader.objects(value, path):
        when = reader.text(item.get("whenUnsatisfiable"), f"{at}.whenUnsatisfiable")
        if when not in ("DoNotSchedule", "ScheduleAnyway"):
            reader.report(f"{at}.whenUnsatisfiable", f"must be DoNotSchedule or ScheduleAnyway, not {when!r}")
        min_domains = item.get("minDomains")
        yield SpreadConstraint(
            topology_key=reader.text(item.get("topologyKey"), f"{at}.topologyKey"),
            max_skew=reader.whole(item.get("maxSkew"), f"{at}.maxSkew"),
            hard=when == "DoNotSchedule",
            selector=read_label_selector(item.get("labelSelector"), f"{at}.labelSelector", reader),
            match_label_keys=reader.texts(item.get("matchLabelKeys"), f"{at}.matchLabelKeys"),
            min_domains=1 if min_domains is None else reader.whole(min_domains, f"{at}.minDomains"),
            honor_affinity=_policy(item.get("nodeAffinityPolicy"), f"{at}.nodeAffinityPolicy", reader, True),
            honor_taints=_policy(item.get("nodeTaintsPolicy"), f"{at}.nodeTaintsPolicy", reader, False),
        )


def read_spread_defaults(args: Mapping[str, Any], path: str, reader: Reader) -> SpreadDefaults:
    """The arguments of PodTopologySpread in a KubeSchedulerConfiguration."""
    where = f"{path}.defaultConstraints"
    constraints = tuple(read_spread(args.get("defaultConstraints"), where, reader))
    kind = reader.text(args.get("defaultingType"), f"{path}.defaultingType") or "System"
    if kind not in ("System", "List"):
        reader.report(f"{path}.defaultingType", f"must be System or List, not {kind!r}")
    if kind == "System" and constraints:
        reader.report(where, "must be empty where defaultingType is System")
    seen = set()
    for index, constraint in enumerate(constraints):
        at = f"{where}[{index}]"
        if constraint.selector is not None:
            reader.report(f"{at}.labelSelector", "must not be set, it is worked out for each pod")
        if constraint.max_skew < 1:
            reader.report(f"{at}.maxSkew", "must be at least 1")
        if not is_qualified_name(constraint.topology_key):
            reader.report(f"{at}.topologyKey", f"{constraint.topology_key!r} is not a label key")
        if (constraint.topology_key, constraint.hard) in seen:
            reader.report(at, "repeats the topologyKey and whenUnsatisfiable of an earlier one")
        seen.add((constraint.topology_key, constraint.hard))
    return SYSTEM_DEFAULTS if kind == "System" else SpreadDefaults(constraints)


def _policy(value: Any, path: str, reader: Reader, default: bool) -> bool:
    if value is None:
        return default
    name = reader.text(value, path)
    if name not in _POLICIES:
        reader.report(path, f"must be Honor or Ignore, not {name!r}")
    return _POLICIES.get(name, default)
