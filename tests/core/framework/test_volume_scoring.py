"""Scores by how full storage gets; the values are those of kube-scheduler's own tests where it has some."""

import pytest

from moorage.core.framework.volume_matching import Offer, Provision
from moorage.core.framework.volume_scoring import DEFAULT_SHAPE, storage_score
from moorage.core.snapshot.reservations import Binding
from tests.kit.volume_models import make_capacity, make_claim, make_volume

RISING = ((0, 0), (100, 10))


def bound(*pairs, classes=("local",)):
    """An offer of existing volumes: (requested, capacity), the classes in turn."""
    bindings = [
        Binding(
            make_claim(f"c{i}", request=requested),
            make_volume(f"v{i}", capacity=capacity, storage_class=classes[i % len(classes)]),
        )
        for i, (requested, capacity) in enumerate(pairs)
    ]
    return Offer(bindings=tuple(bindings))


@pytest.mark.parametrize(
    ("offer", "shape", "score"),
    [
        (Offer(), RISING, 0),
        (bound(("50", "100")), RISING, 50),
        (bound(("50", "100")), DEFAULT_SHAPE, 50),
        (bound(("1", "100")), DEFAULT_SHAPE, 99),
        (bound(("100", "100")), RISING, 100),
        (bound(("200", "100")), RISING, 100),
        (bound(("1", "0")), RISING, 100),
        (bound((None, "100")), RISING, 0),
        (bound(("30", "100"), ("30", "100")), RISING, 30),
        (bound(("30", "100"), ("100", "100"), classes=("one", "two")), RISING, 65),
        (bound(("30", "100"), ("31", "100"), classes=("one", "two")), RISING, 31),  # 30.5 is rounded up
        (bound(("1", "3")), RISING, 33),
        (bound(("35", "100")), ((10, 4), (20, 9), (50, 3)), 60),
        (bound(("1", "100")), ((10, 4), (20, 9)), 40),
        (bound(("90", "100")), ((10, 4), (20, 9)), 90),
        (bound(("33", "100")), ((0, 0), (90, 7)), 25),  # 25.67 truncated
        (bound(("33", "100")), ((0, 7), (90, 0)), 45),  # 70 - 25.67, truncated towards 70
    ],
)
def test_existing_volumes(offer, shape, score):
    assert storage_score(offer, shape) == score


def made(*amounts, room="100", storage_class="late"):
    """An offer to make volumes out of one pool."""
    capacity = make_capacity("pool", room, host="a", storage_class=storage_class)
    claims = [make_claim(f"c{i}", request=a, storage_class=storage_class) for i, a in enumerate(amounts)]
    return tuple(Provision(claim, capacity) for claim in claims)


def test_the_pool_is_shared_by_the_claims_of_a_class():
    assert storage_score(Offer(provisions=made("30", "30")), RISING) == 60
    assert storage_score(Offer(provisions=made("60", "60")), RISING) == 100
    two = (*made("30"), *made("50", storage_class="other"))
    assert storage_score(Offer(provisions=two), RISING) == 40


def test_a_pool_of_unknown_size_is_full():
    """kube-scheduler panics here."""
    assert storage_score(Offer(provisions=made("30", room=None)), RISING) == 100


def test_without_a_capacity_nothing_counts():
    assert storage_score(Offer(provisions=(Provision(make_claim("c")),)), RISING) == 0


def test_existing_volumes_alone_count_if_there_are_any():
    offer = bound(("50", "100"))
    assert storage_score(Offer(bindings=offer.bindings, provisions=made("10")), RISING) == 50
