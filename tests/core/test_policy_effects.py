"""The little that is decided here: what an attempt costs without policies, and when a rejection may be void."""

import pytest

from moorage.core.audits import Answer, Audits
from moorage.core.framework.answers import PluginError
from moorage.core.framework.interface import Rejected
from moorage.core.framework.runner import Runner
from moorage.core.model.policy import NodeRules
from moorage.core.policy.book import PolicyBook
from moorage.core.policy.census import Census
from moorage.core.policy_effects import PolicyEffects
from moorage.core.queue.scheduling_queue import Place, QueuedPod
from moorage.core.snapshot.snapshot import Snapshot
from tests.core.driving import explode, profile_with
from tests.kit.models import make_pod
from tests.kit.policy_builders import make_policy


class Looks:
    """Turns that only note who was looked at."""

    def __init__(self):
        self.seen = []

    def look(self, uid, now):
        self.seen.append(uid)
        return []

    def hold_of(self, pod, now):
        return None


class Timed:
    """A plugin whose mind may change at a time of its own."""

    def __init__(self, name, changes_at):
        self.name = name
        self.at = changes_at

    def pre_enqueue(self, pod) -> Rejected | None:
        return None

    def changes_at(self, pod, snapshot):
        return self.at() if callable(self.at) else self.at

    def wakes_on(self):
        return profile_with().plugins[0].wakes_on()


def effects(*policies):
    book = PolicyBook(lambda name: {})
    for policy in policies:
        book.apply(policy)
    looks, census = Looks(), Census()
    audits = Audits(book, lambda pod, merged: runner(), None)
    return PolicyEffects(book, looks, audits, census), looks, census  # type: ignore[arg-type]


def runner(*plugins):
    profile = profile_with(*plugins)
    return Runner(profile.plugins, profile.weights, Snapshot())


def queued():
    return QueuedPod(make_pod("web"), 0.0, Place.UNSCHEDULABLE, 0.0, 0.0, 0.0)


def test_without_policies_nothing_is_asked():
    effect, looks, _ = effects()
    entry = queued()
    assert effect.refused(entry, runner(Timed("One", explode)), ["One"], [], 5.0) == []
    assert effect.audit(entry.pod, Answer(), None, 5.0) == []
    assert effect.placed(entry.pod) == ""
    assert effect.held_by(runner(), entry.pod) == ""
    assert looks.seen == []


def test_the_first_of_the_plugins_that_refused_the_pod_says_when_that_may_be_void():
    effect, looks, census = effects(make_policy())
    census.enter("uid-web", (make_policy().ref,))
    entry = queued()
    plugins = runner(Timed("One", 50.0), Timed("Two", 40.0), Timed("Never", None), Timed("Other", 7.0))
    effect.refused(entry, plugins, ["One", "Two", "Never"], [("One", "no")], 5.0)
    assert entry.lapses == 40.0
    assert looks.seen == ["uid-web"]
    assert census.blocked(make_policy().ref, 3)[0].plugin == "One"


def test_a_plugin_that_breaks_is_named():
    effect, _, _ = effects(make_policy())
    with pytest.raises(PluginError, match='"One"'):
        effect.refused(queued(), runner(Timed("One", explode)), ["One"], [], 5.0)


def test_a_placed_pod_is_refused_by_nobody_and_names_its_policies():
    policies = (
        make_policy("a", precedence=2, nodes=NodeRules()),
        make_policy("b", namespace="default", nodes=NodeRules()),
    )
    effect, _, census = effects(*policies)
    census.enter("uid-web", (policies[0].ref,))
    census.refuse("uid-web", [("One", "no")])
    assert effect.placed(make_pod("web")) == "a,default/b"
    assert census.blocked(policies[0].ref, 3) == ()
