"""PreBind and the wait for it; its place in a pod's life is in tests/core/test_preparations.py."""

from typing import Any

import pytest

from moorage.core.cycle.preparation import Ended, Preparing, error_text, prepare, revisit
from moorage.core.framework.answers import PluginError
from moorage.core.framework.interface import GivenUp, Preparation, Progress
from moorage.core.framework.runner import Runner
from moorage.core.model.instructions import SelectNode
from moorage.core.model.storage import ClaimRef
from moorage.core.profile import default_profile
from moorage.core.snapshot.snapshot import Snapshot
from tests.kit.models import make_pod

STEP = SelectNode(ClaimRef("default", "c", "u"), "1", "a")
POD = make_pod("web", node="a")


class Fetching:
    """A PreBind plugin with fixed answers."""

    def __init__(self, name, preparation, progress=Progress.UNDER_WAY):
        self.name, self.preparation, self.answer = name, preparation, progress

    def pre_bind(self, pod, node_name, snapshot):
        if isinstance(self.preparation, Exception):
            raise self.preparation
        return self.preparation

    def progress(self, pod, node_name, snapshot):
        return self.answer

    def overdue(self):
        return f"{self.name} is slow"

    def wakes_on(self):
        return ()


def waiting(*left: Any) -> Preparing:
    """A pod that waits for these plugins: each with its timeout and its deadline."""
    return Preparing(POD, 1, list(left))


def runner(*plugins):
    return Runner((*default_profile().plugins, *plugins), {}, Snapshot())


def test_a_pod_that_needs_nothing_can_be_bound_at_once():
    assert prepare(runner(Fetching("One", None)), POD, 1, 100.0) == (None, ())


def test_the_steps_of_all_plugins_and_the_first_deadline():
    one = Fetching("One", Preparation((STEP,), 30.0))
    two = Fetching("Two", Preparation((), 20.0))
    preparing, steps = prepare(runner(one, Fetching("None", None), two), POD, 7, 100.0)
    assert preparing is not None
    assert steps == (STEP,)
    assert (preparing.pod, preparing.ticket, preparing.deadline) == (POD, 7, 120.0)
    preparing.restart(200.0)
    assert preparing.deadline == 220.0


def test_the_wait_ends_when_the_last_plugin_is_done():
    one, two = Fetching("One", None), Fetching("Two", None, Progress.DONE)
    made, preparing = runner(one, two), waiting((one, 10.0, 110.0), (two, 5.0, 105.0))
    assert revisit(made, preparing, 104.0) is None
    assert preparing.deadline == 110.0
    one.answer = Progress.DONE
    assert revisit(made, preparing, 104.0) == Ended()


def test_done_in_the_last_moment_is_done():
    one = Fetching("One", None, Progress.DONE)
    assert revisit(runner(one), waiting((one, 10.0, 110.0)), 110.0) == Ended()


def test_too_slow_or_given_up():
    one = Fetching("One", None)
    preparing = waiting((one, 10.0, 110.0))
    assert revisit(runner(one), preparing, 110.0) == Ended('running PreBind plugin "One": One is slow')
    one.answer = GivenUp("no")
    assert revisit(runner(one), preparing, 100.0) == Ended(error_text("One", "no"))


def test_what_a_plugin_raises_is_told_as_such():
    with pytest.raises(PluginError, match='running PreBind plugin "One": KeyError'):
        prepare(runner(Fetching("One", KeyError("x"))), POD, 1, 0.0)
