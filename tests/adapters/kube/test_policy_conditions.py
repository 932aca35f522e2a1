"""A policy's status as the API has it."""

from typing import Any

import pytest

from moorage.adapters.kube.policy_conditions import Usage, merge_patch, needs_usage, status_of
from moorage.adapters.kube.policy_register import KnownPolicy
from moorage.core.model.policy import (
    LimitRule,
    LoadRules,
    Mode,
    NodeFacts,
    NodeRules,
    OnStale,
    Policy,
    PolicyRef,
    Pool,
    Pools,
    Preference,
    Scoring,
    Speaks,
)
from moorage.core.model.policy_report import (
    AuditReport,
    AuditSample,
    BlockedPods,
    LostField,
    PolicyReport,
    PoolUse,
)
from tests.kit.policy_builders import labelled

REF = PolicyRef("", "p")
NOW = 1767225600.0
STAMP = "2026-01-01T00:00:00Z"
MEASURED = Usage(True, "Measured", "fine")


class Expression:
    """Speaks of what it is told to."""

    text = "x"

    def __init__(self, speaks: Speaks) -> None:
        self.speaks = speaks

    def truth(self, node: NodeFacts) -> bool:
        return True

    def score(self, node: NodeFacts) -> float:
        return 0.0


def known(generation: int = 1, status: Any = None, **fields: Any) -> KnownPolicy:
    return KnownPolicy(REF, "uid", generation, status=status or {}, **fields)


def policy(generation: int = 1, **fields: Any) -> Policy:
    return Policy(REF, "uid", generation, **fields)


def conditions(status: dict[str, Any]) -> dict[str, tuple[str, str, str]]:
    return {c["type"]: (c["status"], c["reason"], c["message"]) for c in status["conditions"]}


def of(found: KnownPolicy, report: PolicyReport | None = None, usage: Usage = MEASURED):
    return conditions(status_of(found, report, usage, NOW))


COUNTING: list[tuple[dict[str, Any], str]] = [
    ({"limits": (LimitRule("zone", 1),)}, "limits"),
    ({"pools": Pools((Pool("all", labelled({})),))}, "pools"),
    ({"nodes": NodeRules(keep_free={"cpu": 10})}, "nodes.keepFree"),
    (
        {"limits": (LimitRule("zone", 1),), "nodes": NodeRules(keep_free={"cpu": 10})},
        "limits, nodes.keepFree",
    ),
]


@pytest.mark.parametrize(("fields", "named"), COUNTING, ids=[named for _, named in COUNTING])
def test_what_counts_is_best_effort_for_who_binds_without_asking(fields: dict[str, Any], named: str):
    found = known(in_force=policy(**fields))

    def effective(exact: bool) -> tuple[str, str, str]:
        return conditions(status_of(found, None, MEASURED, NOW, exact=exact))["Effective"]

    assert effective(True) == ("True", "Enforced", "generation 1 is in force")
    status, reason, message = effective(False)
    assert (status, reason) == ("True", "Enforced")
    assert message == (
        f"generation 1 is in force; best effort, as pods are bound without asking again: {named} "
        "(moorage extender --enable-bind makes that exact)"
    )


def test_what_does_not_count_is_exact_for_everybody():
    fields: dict[str, Any] = {"nodes": NodeRules(selector=labelled({"disk": "ssd"}))}
    status = status_of(known(in_force=policy(**fields)), None, MEASURED, NOW, exact=False)
    assert conditions(status)["Effective"] == ("True", "Enforced", "generation 1 is in force")
    canary = policy(canary_percent=20, limits=(LimitRule("zone", 1),))
    _, reason, message = conditions(status_of(known(in_force=canary), None, MEASURED, NOW, exact=False))[
        "Effective"
    ]
    assert reason == "Canary"
    assert "for 20 % of the owners; best effort" in message


def test_a_policy_in_force():
    status = status_of(known(in_force=policy()), PolicyReport(REF, 1, pending=1, bound=2), MEASURED, NOW)
    common = {"lastTransitionTime": STAMP, "observedGeneration": 1}
    assert status == {
        "observedGeneration": 1,
        "conditions": [
            {
                "type": "Accepted",
                "status": "True",
                "reason": "Valid",
                "message": "generation 1 is accepted",
                **common,
            },
            {
                "type": "Effective",
                "status": "True",
                "reason": "Enforced",
                "message": "generation 1 is in force",
                **common,
            },
            {
                "type": "Conflicted",
                "status": "False",
                "reason": "NoConflict",
                "message": "every field of the policy counts",
                **common,
            },
        ],
        "pods": {"matched": 3, "pending": 1, "bound": 2},
    }


def test_a_refused_generation_names_the_field_and_what_is_in_force():
    problems = (("spec.nodes.expression", "unknown variable x"), ("", "odd"))
    found = of(known(3, problems=problems, in_force=policy(2)))
    assert found["Accepted"] == (
        "False",
        "Invalid",
        "spec.nodes.expression: unknown variable x; odd (generation 3; generation 2 stays in force)",
    )
    assert found["Effective"] == ("True", "EarlierGeneration", "generation 2 is in force")
    found = of(known(1, problems=problems))
    assert found["Accepted"][2].endswith("(generation 1; no generation is in force)")
    assert found["Effective"] == ("False", "NotAccepted", "no generation is in force")


@pytest.mark.parametrize(
    ("fields", "status", "reason"),
    [
        ({"mode": Mode.AUDIT}, "False", "Audit"),
        ({"mode": Mode.DISABLED}, "False", "Disabled"),
        ({"canary_percent": 25}, "True", "Canary"),
    ],
)
def test_what_a_policy_does(fields, status, reason):
    assert of(known(in_force=policy(**fields)))["Effective"][:2] == (status, reason)


def test_a_policy_that_waits_for_pods_to_be_read():
    assert of(known(1, waiting=policy(1)))["Effective"][:2] == ("False", "Pending")
    found = of(known(2, waiting=policy(2), in_force=policy(1)))
    assert found["Effective"] == ("True", "EarlierGeneration", "generation 1 is in force")
    assert found["Accepted"][0] == "True"


def test_fields_that_lost_are_named_with_the_winner():
    lost = (LostField("scoring.strategy", PolicyRef("", "first")), LostField("pools", PolicyRef("n", "q")))
    found = of(known(in_force=policy()), PolicyReport(REF, 1, lost=lost))
    assert found["Conflicted"][:2] == ("True", "FieldsLost")
    assert "scoring.strategy (to first), pools (to n/q)" in found["Conflicted"][2]


@pytest.mark.parametrize(
    ("fields", "needs"),
    [
        ({}, False),
        ({"load": LoadRules()}, True),
        ({"load": LoadRules(), "mode": Mode.DISABLED}, False),
        ({"load": LoadRules(), "mode": Mode.AUDIT}, True),
        ({"nodes": NodeRules(expression=Expression(Speaks.NODE | Speaks.USAGE))}, True),
        ({"nodes": NodeRules(expression=Expression(Speaks.REQUESTED))}, False),
        ({"scoring": Scoring(prefer=(Preference(1, expression=Expression(Speaks.USAGE)),))}, True),
        ({"scoring": Scoring(prefer=(Preference(1),))}, False),
    ],
)
def test_who_needs_to_know_what_nodes_use(fields, needs):
    assert needs_usage(policy(**fields)) is needs
    assert ("MetricsAvailable" in of(known(in_force=policy(**fields)))) is needs


def test_metrics_that_are_missing_or_stale():
    ignoring = known(in_force=policy(load=LoadRules()))
    excluding = known(in_force=policy(load=LoadRules(on_stale=OnStale.EXCLUDE)))
    missing = Usage(False, "NotServed", "there are none")
    assert of(ignoring)["MetricsAvailable"] == ("True", "Measured", "fine")
    assert of(ignoring, usage=missing)["MetricsAvailable"] == (
        "False",
        "NotServed",
        "there are none; such nodes are not judged by their use",
    )
    assert of(excluding, usage=missing)["MetricsAvailable"][2] == (
        "there are none; nodes without a recent sample are not used"
    )
    stale = of(excluding, PolicyReport(REF, 1, stale_nodes=2))["MetricsAvailable"]
    assert stale == (
        "False",
        "StaleNodes",
        "2 nodes have no recent sample; nodes without a recent sample are not used",
    )
    assert of(ignoring, PolicyReport(REF, 1, stale_nodes=0))["MetricsAvailable"][0] == "True"


def test_the_time_of_a_transition_is_that_of_the_status():
    def with_accepted(status: str, at: str) -> dict[str, Any]:
        return {"conditions": ["nonsense", {"type": "Accepted", "status": status, "lastTransitionTime": at}]}

    long_ago = "2020-01-01T00:00:00Z"

    def accepted(status: Any) -> str:
        found = status_of(known(2, status, in_force=policy(2)), None, MEASURED, NOW)
        return str(found["conditions"][0]["lastTransitionTime"])

    assert accepted(with_accepted("True", long_ago)) == long_ago, "only the text is another one"
    assert accepted(with_accepted("False", long_ago)) == STAMP
    assert accepted({}) == STAMP
    assert accepted({"conditions": 7}) == STAMP


def test_all_figures():
    report = PolicyReport(
        REF,
        1,
        reasons=tuple(BlockedPods("Fit", "x" * 2000, i) for i in range(40)),
        pools=(PoolUse("od", 3, 3), PoolUse("spot", 4, None)),
        audit=AuditReport(10, 2, 1, (AuditSample("n/p", "a", "", "full"),)),
        failed_expressions=3,
        last_error="no such key",
    )
    status = status_of(known(in_force=policy()), report, MEASURED, NOW)
    assert len(status["reasons"]) == 32
    assert len(status["reasons"][0]["reason"]) == 1024
    assert status["pools"] == [{"name": "od", "pods": 3, "max": 3}, {"name": "spot", "pods": 4}]
    assert status["audit"] == {
        "evaluated": 10,
        "different": 2,
        "skipped": 1,
        "samples": [{"pod": "n/p", "chosen": "a", "wouldChoose": "", "why": "full"}],
    }
    assert status["expressions"] == {"failed": 3, "lastError": "no such key"}


def test_failures_of_the_expression_over_pods_count_too():
    def expressions(report: PolicyReport) -> Any:
        return status_of(known(in_force=policy()), report, MEASURED, NOW, (4, "too large")).get("expressions")

    assert expressions(PolicyReport(REF, 1)) == {"failed": 4, "lastError": "too large"}
    both = PolicyReport(REF, 1, failed_expressions=3, last_error="no such key")
    assert expressions(both) == {"failed": 7, "lastError": "no such key"}


def test_without_a_report_the_figures_stay_while_something_is_in_force():
    before = {"pods": {"matched": 7}, "audit": {"evaluated": 1}, "observedGeneration": 1}
    status = status_of(known(2, before, in_force=policy(2)), None, MEASURED, NOW)
    assert (status["pods"], status["audit"]) == (before["pods"], before["audit"])
    assert "pods" not in status_of(known(2, before, problems=(("a", "b"),)), None, MEASURED, NOW)


def test_a_conflict_is_not_forgotten_for_want_of_a_report():
    lost = (LostField("pools", PolicyRef("n", "q")),)
    before = status_of(known(in_force=policy()), PolicyReport(REF, 1, lost=lost), MEASURED, NOW)
    assert status_of(known(1, before, in_force=policy()), None, MEASURED, NOW + 9) == before


def test_the_patch_takes_away_what_is_gone():
    assert merge_patch({"a": 1, "b": 2}, {"b": 3, "c": 4}) == {"a": None, "b": 3, "c": 4}
