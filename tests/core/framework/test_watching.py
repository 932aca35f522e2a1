"""Whoever looks on is told of a step's phases and, if it wants, of each call of a plugin; decisions stay the same."""

import pytest

from moorage.core.engine import Engine
from moorage.core.framework.answers import PluginError, guarded
from moorage.core.framework.interface import Rejected, Skip
from moorage.core.framework.watching import NOW, Phase, enter, status_of, watched
from moorage.core.model.decision import Code
from moorage.core.model.events import NodeApplied, PodPending
from moorage.core.model.instructions import Attempted, AttemptResult
from moorage.core.plugins.node_name import NodeName
from tests.core.driving import explode
from tests.kit.models import make_node, make_pod


class Notes:
    """Writes down what it is told."""

    def __init__(self, *, detailed: bool = True) -> None:
        self.detailed = detailed
        self.phases: list[str] = []
        self.calls: list[tuple[str, str, str]] = []
        self.depth = self.deepest = 0

    def phase(self, phase: Phase) -> None:
        self.phases.append(str(phase))

    def calling(self) -> None:
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)

    def called(self, plugin: str, point: str, status: str) -> None:
        self.depth -= 1
        self.calls.append((plugin, point, status))


def decide(notes, *pods, nodes=2):
    engine = Engine()
    for index in range(nodes):
        engine.handle(NodeApplied(make_node(f"n{index}", cpu=1000)), 0.0)
    for pod in pods:
        engine.handle(PodPending(pod), 0.0)
    if notes is None:
        return engine.step(1.0)
    return watched(notes, engine.step, 1.0)


def test_the_phases_of_a_placement():
    notes = Notes()
    decide(notes, make_pod("p"))
    assert notes.phases == ["filter", "score", "policies", "place"]
    points = {point for _, point, _ in notes.calls}
    assert {"PreFilter", "Filter", "PreScore", "Score", "NormalizeScore"} <= points
    assert {status for _, _, status in notes.calls} == {"Success", "Skip"}
    assert notes.depth == 0


def test_the_phases_of_an_attempt_in_vain():
    notes = Notes()
    instructions = decide(notes, make_pod("p", cpu=64_000))
    assert notes.phases == ["filter", "diagnose", "preempt", "policies", "tell"]
    assert ("DefaultPreemption", "PostFilter", "Unschedulable") in notes.calls
    assert notes.deepest == 1
    assert notes.depth == 0
    (attempted,) = [each for each in instructions if isinstance(each, Attempted)]
    assert attempted.result is AttemptResult.UNSCHEDULABLE
    assert attempted.preemption_tried


def test_where_there_is_no_node_nobody_is_looked_for_to_evict():
    (attempted,) = [each for each in decide(None, make_pod("p"), nodes=0) if isinstance(each, Attempted)]
    assert not attempted.preemption_tried


def test_who_does_not_ask_for_details_is_not_told_of_calls():
    notes = Notes(detailed=False)
    decide(notes, make_pod("p"))
    assert notes.phases
    assert notes.calls == []


def test_decisions_are_the_same():
    pod = make_pod("p")
    assert decide(Notes(), pod) == decide(None, pod)


def test_a_plugin_that_raises_has_ended_too():
    notes = Notes()
    with pytest.raises(PluginError):
        watched(notes, guarded, NodeName(), "Filter", explode)
    assert notes.calls == [("NodeName", "Filter", "Error")]
    assert notes.depth == 0


def test_it_looks_on_for_a_step_only():
    notes = Notes()
    assert watched(notes, lambda: NOW.calls) is notes
    enter(Phase.SCORE)
    assert NOW.calls is None
    assert notes.phases == []


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (None, "Success"),
        (Skip.SKIP, "Skip"),
        (Rejected(("no",)), "Unschedulable"),
        (Rejected(("no",), Code.UNRESOLVABLE), "UnschedulableAndUnresolvable"),
    ],
)
def test_how_a_call_ends_has_kube_schedulers_name(answer, status):
    assert status_of(answer) == status
