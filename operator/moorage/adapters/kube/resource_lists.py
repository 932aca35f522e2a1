"""Resource lists of the API ({"cpu": "500m", "memory": "1Gi"}) as exact integers.

While they are added up, all amounts are thousandths of a unit: the API server rounds every entry up to that,
so nothing is lost.  Only at the end do they become the core's base units.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from moorage.adapters.kube.fields import Reader
from moorage.core.model.quantity import QuantityError, clamp, parse
from moorage.core.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, is_scalar

#: Resource name -> thousandths of a unit.
Millis = dict[str, int]

_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME_PART: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


def read_list(reader: Reader, value: object, path: str) -> Millis:
    """The entries of a resource list; negative and unreadable amounts are reported and count as 0."""
    amounts: Millis = {}
    for name, quantity in reader.mapping(value, path).items():
        try:
            millis = 0 if quantity is None else parse(quantity).millis
        except QuantityError as error:
            reader.report(f"{path}.{name}", str(error))
            continue
        if millis < 0:
            reader.report(f"{path}.{name}", f"must not be negative, got {quantity!r}")
            millis = 0
        amounts[name] = millis
    return amounts


def base_units(amounts: Mapping[str, int], *, also_pods: bool = False) -> dict[str, int]:
    """The amounts that scheduling counts: milli-CPU for cpu, whole units, rounded up, for the rest."""
    return {
        name: clamp(millis if name == CPU else -(-millis // 1000))
        for name, millis in amounts.items()
        if is_counted(name) or (also_pods and name == PODS)
    }


@lru_cache(maxsize=4096)
def is_counted(name: str) -> bool:
    """Whether kube-scheduler compares this resource of a pod with a node's; it ignores all other names."""
    return name in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar(name)


@lru_cache(maxsize=4096)
def is_qualified_name(name: str) -> bool:
    """Whether the name is legal as a label key, taint key or resource name: ``[domain/]name``."""
    domain, slash, last = name.rpartition("/")
    if slash and not (len(domain) <= 253 and _SUBDOMAIN.fullmatch(domain)):
        return False
    return len(last) <= 63 and _NAME_PART.fullmatch(last) is not None


def is_subdomain(name: str) -> bool:
    """Whether the name is legal as the name of most objects (a DNS subdomain)."""
    return len(name) <= 253 and _SUBDOMAIN.fullmatch(name) is not None


def is_label_value(value: str) -> bool:
    """Whether the text is legal as a label's value."""
    return not value or (len(value) <= 63 and _NAME_PART.fullmatch(value) is not None)
