"""The two who decide: Moorage in this process, and kube-scheduler in the oracle's."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Any, Final

from moorage.adapters.kube.convert import Converter
from moorage.cli.cases import decide_case
from moorage.core.profile import REGISTRY
from tests.parity.compare import Difference, compare
from tests.parity.oracle import Answer, Case, Oracle

#: Plugins of kube-scheduler's default profile that Moorage may not have (yet).  As long as it does not, they are
#: switched off in the oracle, where they would add columns of zeros to the scores and, DynamicResources, "not found"
#: to some messages (docs/decisions/0011).
OPTIONAL: Final = (
    "DynamicResources",
    "InterPodAffinity",
    "NodeDeclaredFeatures",
    "PodTopologySpread",
)
ABSENT: Final = tuple(name for name in OPTIONAL if name not in REGISTRY)


def moorage(case: Case, converter: Converter | None = None) -> Answer:
    """Moorage's answer."""
    return decide_case(case, converter)


def for_oracle(case: Case) -> Case:
    """The case with the plugins switched off that only kube-scheduler has."""
    config: dict[str, Any] = copy.deepcopy(case.get("config") or {})
    profiles = config.setdefault("profiles", []) or [{}]
    config["profiles"] = profiles
    for profile in profiles:
        points = profile["plugins"] = profile.get("plugins") or {}
        multi = points["multiPoint"] = points.get("multiPoint") or {}
        known = {item["name"] for item in multi.get("disabled") or ()}
        added = [{"name": name} for name in ABSENT if name not in known]
        multi["disabled"] = [*(multi.get("disabled") or ()), *added]
    return {**case, "config": config}


class OracleUnsure(Exception):
    """The oracle differs from the scheduler's own loop here, or had to guess: nothing to compare with."""


def differences(case: Case, theirs: Answer, converter: Converter | None = None) -> list[Difference]:
    """How Moorage differs from the oracle's answer to ``for_oracle(case)``.  Raises OracleUnsure."""
    if warnings := theirs.get("warnings"):
        if any(not warning.startswith("self-check") for warning in warnings):
            raise AssertionError(f"the generator made an object that the API does not know: {warnings}")
        raise OracleUnsure("; ".join(warnings))
    return compare(moorage(case, converter), theirs)


def ask_all(oracle: Oracle, cases: Iterable[Case]) -> Iterator[tuple[Case, Answer]]:
    """Each case with the oracle's answer to ``for_oracle(case)``."""
    remembered: list[Case] = []

    def sent() -> Iterator[Case]:
        for case in cases:
            remembered.append(case)
            yield for_oracle(case)

    for _, answer in oracle.ask_all(sent()):
        yield remembered.pop(0), answer
