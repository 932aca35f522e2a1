"""Masks are kept as long as they are true, and no longer than there is room."""

import numpy as np
import pytest

from moorage.core.snapshot.journal import Journal
from moorage.core.snapshot.masks import MaskCache


@pytest.fixture
def asked():
    """A cache of masks of eight rows, and the list of what was computed."""

    class Asked:
        def __init__(self):
            self.journal = Journal()
            self.computed: list[str] = []
            self.cache: MaskCache[np.bool_] = MaskCache(self.journal)

        def __call__(self, key):
            def compute():
                self.computed.append(key)
                return np.ones(8, dtype=np.bool_)

            return self.cache.get(key, compute)

    return Asked()


def test_a_mask_is_computed_once_an_epoch(asked):
    assert asked("a") is asked("a")
    asked.journal.mark(3)
    asked("a")
    asked("b")
    assert asked.computed == ["a", "a", "b"]


def test_nobody_can_write_to_a_mask_that_others_get_too(asked):
    with pytest.raises(ValueError, match="read-only"):
        asked("a")[0] = False


def test_the_oldest_make_room(asked, monkeypatch):
    monkeypatch.setattr(MaskCache, "LIMIT", 16)
    for key in "abcca":
        asked(key)
    assert "".join(asked.computed) == "abca"


def test_a_mask_computed_anew_is_not_counted_twice(asked, monkeypatch):
    monkeypatch.setattr(MaskCache, "LIMIT", 16)
    for key in "ab":
        asked(key)
        for row in range(5):
            asked.journal.mark(row)
            asked(key)
    asked.computed.clear()
    asked("b")
    assert asked.computed == []
    assert asked.cache._bytes == 16


def test_one_mask_is_kept_however_large(asked, monkeypatch):
    monkeypatch.setattr(MaskCache, "LIMIT", 1)
    asked("a")
    asked("a")
    assert asked.computed == ["a"]


def test_cleared_when_the_number_of_rows_changes(asked):
    asked("a")
    asked.cache.clear()
    asked("a")
    assert asked.computed == ["a", "a"]
    assert asked.cache._bytes == 8
