"""Which rows changed since a moment."""

from moorage.core.snapshot.journal import Journal


def rows(journal, epoch):
    """The rows changed since, None if it is too long ago to tell."""
    changed = journal.since(epoch)
    return None if changed is None else changed.tolist()


def test_the_distinct_rows_since_an_epoch():
    journal = Journal()
    journal.mark(3)
    epoch = journal.epoch
    for row in (5, 2, 5):
        journal.mark(row)
    assert rows(journal, epoch) == [5, 2]
    assert rows(journal, 0) == [3, 5, 2]
    assert rows(journal, journal.epoch) == []
    assert journal.epoch - epoch == 3


def test_what_is_too_long_ago_cannot_be_told(monkeypatch):
    """None, and never a part of the changes."""
    monkeypatch.setattr(Journal, "LIMIT", 4)
    journal = Journal()
    for row in range(5):
        journal.mark(row)
    assert journal.epoch == 5
    assert rows(journal, 1) is None
    assert rows(journal, 2) == [2, 3, 4]


def test_it_does_not_grow_beyond_its_limit(monkeypatch):
    monkeypatch.setattr(Journal, "LIMIT", 4)
    journal = Journal()
    for row in range(1000):
        journal.mark(row)
        assert len(journal._rows) <= 4
    assert journal.epoch == 1000
