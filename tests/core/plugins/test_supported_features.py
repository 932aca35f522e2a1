"""SupportedFeatures: ours; what cannot be honoured is refused with words."""

from dataclasses import replace

from moorage.core.cache.node_changes import node_event
from moorage.core.cache.pod_changes import pending_event
from moorage.core.framework.interface import Rejected, Skip
from moorage.core.model.decision import Code
from moorage.core.plugins.supported_features import SupportedFeatures
from moorage.core.snapshot.snapshot import Snapshot
from tests.kit.models import make_node, make_pod
from tests.kit.plugin_checks import wakes

ODD = make_pod("web", unsupported=("resource claims",), invalid=("spec.x: not a number",))


def test_every_feature_and_every_unreadable_field_is_named():
    reasons = (
        "pod asks for resource claims, which this scheduler does not support yet",
        "pod cannot be read: spec.x: not a number",
    )
    assert SupportedFeatures().pre_filter(ODD, Snapshot()) == Rejected(reasons, Code.UNRESOLVABLE)


def test_a_pod_that_asks_for_nothing_odd_is_let_through():
    assert SupportedFeatures().pre_filter(make_pod("web"), Snapshot()) is Skip.SKIP


def test_only_another_template_helps():
    changed = replace(ODD, spec=replace(ODD.spec, unsupported=()))
    assert wakes(SupportedFeatures(), ODD, pending_event(ODD, changed))
    assert not wakes(SupportedFeatures(), ODD, pending_event(ODD, replace(ODD, labels={"x": "y"})))
    assert not wakes(SupportedFeatures(), ODD, node_event(None, make_node("a")))
