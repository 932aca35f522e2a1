"""Spread constraints: the selector as it is meant on a pod, and the system's defaults."""

from moorage.core.model.selector import LabelSelector
from moorage.core.model.spread import HOSTNAME, SYSTEM_DEFAULTS, ZONE, SpreadConstraint
from tests.kit.models import label_in

WEB = LabelSelector((label_in("app", "web"),))


def test_keys_that_the_pod_carries_narrow_the_selector():
    constraint = SpreadConstraint("zone", selector=WEB, match_label_keys=("rev", "absent"))
    assert constraint.selector_for({"rev": "2"}) == LabelSelector((*WEB.requirements, label_in("rev", "2")))
    assert constraint.selector_for({}) == WEB


def test_a_missing_selector_stays_missing():
    assert SpreadConstraint("zone", match_label_keys=("rev",)).selector_for({"rev": "2"}) is None


def test_the_defaults_are_kube_scheduler_s():
    told = [(c.topology_key, c.max_skew, c.hard) for c in SYSTEM_DEFAULTS.constraints]
    assert told == [(HOSTNAME, 3, False), (ZONE, 5, False)]
    assert SYSTEM_DEFAULTS.system
    assert all(c.honor_affinity and not c.honor_taints for c in SYSTEM_DEFAULTS.constraints)
