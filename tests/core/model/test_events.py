"""The engine's inputs: each has its handler, and each is a value."""

from typing import get_args

import pytest

from moorage.core.engine import HANDLERS
from moorage.core.model.events import BindFailed, BindFailure, Event, PodGone
from moorage.core.model.pod import PodRef

REF = PodRef("default", "web", "1")


def test_the_engine_handles_every_event():
    assert set(HANDLERS) == set(get_args(Event))


def test_events_compare_by_what_they_say():
    """So that a recorded log can be compared with a replay."""
    assert PodGone(REF) == PodGone(PodRef("default", "web", "1"))
    assert PodGone(REF) != PodGone(PodRef("default", "web", "2"))


def test_a_bind_failed_for_one_of_the_known_reasons():
    assert BindFailed(REF, "a", BindFailure("gone"), "").failure is BindFailure.GONE
    with pytest.raises(ValueError, match="'nonsense' is not a valid BindFailure"):
        BindFailure("nonsense")
