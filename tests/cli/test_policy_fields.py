"""Fields of policies in words."""

import pytest

from moorage.adapters.policy.reading import read_policy
from moorage.cli.policy_fields import duration, fields_of
from moorage.core.policy.merge import merge
from tests.kit.raw_policies import FULL, make_policy


def read(name="p", **spec):
    policy = read_policy(make_policy(name, **spec)).policy
    assert policy is not None
    return policy


def test_every_field():
    assert list(fields_of(read(**FULL))) == [
        ("windows", "Allow 22:00 to 06:00 Europe/Berlin, Mon, Tue"),
        ("maxDelay", "8h"),
        ("nodes.selector", "pool in (spot, batch)"),
        ("nodes.expression", "node.allocatable['cpu'] >= quantity('8') && !('legacy' in node.labels)"),
        ("nodes.avoidTaints", "maintenance, x/y=z:NoSchedule"),
        ("nodes.keepFree", "cpu 10%, memory 5%"),
        (
            "pools",
            "on-demand (at most 3), then half (at most 40%), then spot; when full next",
        ),
        ("spread", "maxSkew 2 over topology.kubernetes.io/zone, minDomains 3, DoNotSchedule, for 10m"),
        ("spread", "maxSkew 1 over topology.kubernetes.io/zone, ScheduleAnyway"),
        ("limits", "2 per kubernetes.io/hostname"),
        ("scoring.strategy", "RequestedToCapacityRatio of cpu 1, nvidia.com/gpu 5: 0 at 0%, 10 at 100%"),
        ("scoring.weights.ImageLocality", "0"),
        ("scoring.weights.InterPodAffinity", "5"),
        ("scoring.prefer", "disk=ssd, weight 5"),
        ("scoring.prefer", "100.0 - node.usage['cpu'], weight 2"),
        ("scoring.protect", "nvidia.com/gpu"),
        ("load.target.cpu", "60%, stale after 1m30s: Exclude"),
        ("load.limit.cpu", "85%, stale after 1m30s: Exclude"),
        ("load.limit.memory", "90%, stale after 1m30s: Exclude"),
        (
            "preemption",
            (
                "LowerPriority, victims have run for 10m, their priority is lower by 100, at most 3 of them, "
                "within their disruption budgets"
            ),
        ),
        ("backoff.initial", "500ms"),
        ("backoff.max", "30s"),
        ("pendingDeadline", "1h"),
    ]


def test_what_can_be_lost_is_called_the_same():
    names = {name for name, _ in fields_of(read(**FULL))}
    merged = merge([read("a", **FULL), read("b", **FULL)])
    assert merged.lost
    assert {lost.field for _, lost in merged.lost} <= names


@pytest.mark.parametrize("text", ["8h", "1h30m", "90ms", "1m30s", "1h1m1s1ms"])
def test_durations(text):
    policy = read(pendingDeadline=text)
    assert duration(policy.pending_deadline) == text


@pytest.mark.parametrize(
    ("rules", "text"),
    [
        ({}, "all"),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b", "c"]}]}, "a notin (b, c)"),
        (
            {
                "matchExpressions": [
                    {"key": "a", "operator": "Exists"},
                    {"key": "b", "operator": "DoesNotExist"},
                ]
            },
            "a,!b",
        ),
        ({"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["3"]}]}, "a>3"),
        ({"matchExpressions": [{"key": "a", "operator": "Lt", "values": ["3"]}]}, "a<3"),
    ],
)
def test_selectors(rules, text):
    assert list(fields_of(read(nodes={"selector": rules}))) == [("nodes.selector", text)]


def test_odds_and_ends():
    policy = read(
        preemption={"policy": "Never"},
        windows=[{"start": "01:00", "end": "02:00", "action": "Hold"}],
        pools={"items": [{"name": "a", "selector": {}}], "whenFull": "wait"},
    )
    assert dict(fields_of(policy)) == {
        "windows": "Hold 01:00 to 02:00 UTC, every day",
        "pools": "a; when full wait",
        "preemption": "Never",
    }
