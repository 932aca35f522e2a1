"""Topology spread constraints as JSON, of pods and of configurations."""

import pytest
from hypothesis import given

from moorage.adapters.kube.fields import Reader
from moorage.adapters.kube.spread import read_spread, read_spread_defaults
from moorage.core.model.selector import LabelSelector
from moorage.core.model.spread import SYSTEM_DEFAULTS, SpreadConstraint
from tests.adapters.kube.test_fields import anything
from tests.kit.models import label_in

PLAIN = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}


def read(*items):
    reader = Reader()
    return tuple(read_spread(list(items), "spread", reader)), reader.problems


def test_a_plain_constraint_with_its_defaults():
    assert read(PLAIN) == ((SpreadConstraint("zone", 1, hard=True),), [])


def test_a_whole_constraint():
    found, problems = read(
        {
            "topologyKey": "zone",
            "maxSkew": 3,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"app": "web"}},
            "matchLabelKeys": ["rev"],
            "minDomains": 4,
            "nodeAffinityPolicy": "Ignore",
            "nodeTaintsPolicy": "Honor",
        }
    )
    selector = LabelSelector((label_in("app", "web"),))
    expected = SpreadConstraint(
        "zone",
        3,
        hard=False,
        selector=selector,
        match_label_keys=("rev",),
        min_domains=4,
        honor_affinity=False,
        honor_taints=True,
    )
    assert (found, problems) == ((expected,), [])


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("whenUnsatisfiable", "Sometimes", "must be DoNotSchedule or ScheduleAnyway, not 'Sometimes'"),
        ("whenUnsatisfiable", None, "must be DoNotSchedule or ScheduleAnyway, not ''"),
        ("nodeTaintsPolicy", "honor", "must be Honor or Ignore, not 'honor'"),
        ("maxSkew", "1", "must be an integer, not a string ('1')"),
        ("minDomains", 1.5, "must be an integer, not a number (1.5)"),
    ],
)
def test_problems_name_the_field(field, value, problem):
    assert read({**PLAIN, field: value})[1] == [(f"spread[0].{field}", problem)]


@given(anything)
def test_whatever_comes_it_does_not_raise(value):
    hash(read(value)[0])
    hash(tuple(read_spread(value, "spread", Reader())))


def defaults(**args):
    reader = Reader()
    return read_spread_defaults(args, "args", reader), [f"{path}: {text}" for path, text in reader.problems]


def test_without_arguments_the_system_s_defaults_hold():
    assert defaults() == defaults(defaultingType="System") == (SYSTEM_DEFAULTS, [])


def test_a_list_holds_in_their_place():
    found, problems = defaults(defaultingType="List", defaultConstraints=[PLAIN])
    assert (found.constraints, found.system, problems) == ((SpreadConstraint("zone"),), False, [])
    assert defaults(defaultingType="List")[0].constraints == ()


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (
            {"defaultingType": "Mine"},
            "args.defaultingType: must be System or List, not 'Mine'",
        ),
        (
            {"defaultConstraints": [PLAIN]},
            "args.defaultConstraints: must be empty where defaultingType is System",
        ),
        (
            {"defaultingType": "List", "defaultConstraints": [{**PLAIN, "labelSelector": {}}]},
            "args.defaultConstraints[0].labelSelector: must not be set, it is worked out for each pod",
        ),
        (
            {"defaultingType": "List", "defaultConstraints": [{**PLAIN, "maxSkew": 0}]},
            "args.defaultConstraints[0].maxSkew: must be at least 1",
        ),
        (
            {"defaultingType": "List", "defaultConstraints": [{**PLAIN, "topologyKey": ""}]},
            "args.defaultConstraints[0].topologyKey: '' is not a label key",
        ),
        (
            {"defaultingType": "List", "defaultConstraints": [PLAIN, {**PLAIN, "maxSkew": 2}]},
            "args.defaultConstraints[1]: repeats the topologyKey and whenUnsatisfiable of an earlier one",
        ),
    ],
)
def test_what_kube_scheduler_refuses(args, problem):
    assert defaults(**args)[1] == [problem]
