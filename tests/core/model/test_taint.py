"""Taints and tolerations."""

import pytest

from moorage.core.model.taint import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE, Taint, Toleration, tolerated

TAINT = Taint("dedicated", "gpu", NO_SCHEDULE)


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (Toleration("dedicated", "Equal", "gpu", NO_SCHEDULE), True),
        (Toleration("dedicated", "", "gpu", NO_SCHEDULE), True),  # no operator means Equal
        (Toleration("dedicated", "Equal", "gpu"), True),  # no effect means any
        (Toleration("dedicated", "Equal", "cpu", NO_SCHEDULE), False),
        (Toleration("dedicated", "Equal", "", NO_SCHEDULE), False),
        (Toleration("dedicated", "Equal", "gpu", NO_EXECUTE), False),
        (Toleration("dedicated", "Exists", "", NO_SCHEDULE), True),
        (Toleration("dedicated", "Exists"), True),
        (Toleration("other", "Exists"), False),
        (Toleration("", "Exists"), True),  # tolerates everything
        (Toleration("", "Exists", "", PREFER_NO_SCHEDULE), False),
        (Toleration("dedicated", "Gt", "gpu"), False),  # off in Kubernetes by default
        (Toleration("dedicated", "exists"), False),
    ],
)
def test_one_toleration(toleration, expected):
    assert expected is toleration.tolerates(TAINT)


def test_one_of_several_tolerations_is_enough():
    fitting, other = Toleration("dedicated", "Exists"), Toleration("other", "Exists")
    assert tolerated(TAINT, (other, fitting))
    assert not tolerated(TAINT, (other,))
    assert not tolerated(TAINT, ())
