"""Time, chance and memory: the same events give the same instructions, and nothing stays behind."""

from dataclasses import replace

from moorage.core.model.events import (
    BindFailure,
    NodeGone,
    PodGone,
    PodLeftPending,
)
from tests.core.driving import (
    Driven,
    assert_empty,
    placements,
    plain,
)
from tests.kit.models import make_node, make_pod


def test_the_same_events_give_the_same_instructions():
    def told(seed):
        driven = plain(seed=seed)
        driven.tell(*(make_node(f"n{i}") for i in range(9)), *(make_pod(f"p{i}") for i in range(9)))
        return driven.run()

    assert told(1) == told(1)
    assert placements(told(1)) != placements(told(2))


def test_a_standby_that_never_steps_does_not_grow():
    """Case B35: it takes in events for days, and pods come and go."""
    driven = plain()
    driven.tell(make_node("a"), make_pod("stays"))
    for i in range(3000):
        pod = make_pod(f"p{i}", cpu=10)
        driven.tell(pod, PodLeftPending(pod.ref), replace(pod, node_name="a"), PodGone(pod.ref))
    queue = driven.engine.queue
    sizes = {name: len(getattr(queue, name)) for name in ("_active", "_backoff", "_early", "_pods")}
    assert {name: size for name, size in sizes.items() if size > 1000} == {}


def test_nothing_stays_behind_when_all_pods_and_nodes_are_gone():
    """Case B35."""
    driven = Driven()
    driven.tell(*(make_node(f"n{i}", cpu=1000) for i in range(5)))
    for i in range(400):
        pod = make_pod(f"p{i}", cpu=10 + i * 5, ports=[i], node_selector={} if i % 3 else {"k": str(i)})
        driven.tell(pod)
        told = placements(driven.run())
        for node in told.values():
            if i % 2:
                driven.succeed(pod, node)
                driven.tell(replace(pod, node_name=node))
            else:
                driven.fail(pod, node, BindFailure.UNAVAILABLE)
        driven.run()
        driven.tell(PodLeftPending(pod.ref), PodGone(pod.ref))
        driven.now += 0.1
    driven.tell(*(NodeGone(f"n{i}") for i in range(5)))
    driven.later(100.0)
    assert_empty(driven.engine)
