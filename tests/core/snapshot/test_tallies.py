"""A tally by row and by domain; the book of those that concern a group of pods."""

from moorage.core.model.node import Node
from moorage.core.model.pod_query import PodQuery
from moorage.core.model.selector import LabelSelector, Operator, Requirement
from moorage.core.snapshot.snapshot import Snapshot
from moorage.core.snapshot.tallies import Tally, TallyBook
from tests.kit.models import label_in

WEB = LabelSelector((label_in("app", "web"),))


def made():
    snapshot = Snapshot()
    for row, zone in enumerate("1122"):
        snapshot.set_node(Node(f"n{row}", labels={"zone": zone}))
    return snapshot, Tally(PodQuery(None, WEB), snapshot.capacity)


def by_zone(snapshot, tally):
    topology = snapshot.topology
    return tally.by_domain(topology, topology.domains("zone"), topology.scope(("zone",), None))


def test_groups_are_added_up_row_by_row():
    _, tally = made()
    tally.add_rows({0: 2, 3: 1})
    tally.add_rows({0: 1})
    tally.add_rows(dict.fromkeys(range(40), 1))
    assert tally.counts[:5].tolist() == [4, 1, 1, 2, 1]


def test_domains_follow():
    snapshot, tally = made()
    tally.add(0, 1)
    counts = by_zone(snapshot, tally)
    tally.add(1, 1)
    tally.add(2, 1)
    tally.add(0, -1)
    assert by_zone(snapshot, tally) is counts
    assert counts.values.tolist() == [1, 1, 0]
    assert tally.counts[:4].tolist() == [0, 1, 1, 0]


def test_a_new_layout_is_counted_anew():
    snapshot, tally = made()
    tally.add(0, 1)
    before = by_zone(snapshot, tally)
    snapshot.set_node(Node("n0", labels={"zone": "2"}))
    after = by_zone(snapshot, tally)
    assert after is not before
    assert after.values.tolist() == [0, 1, 0]


def test_counts_in_scopes_that_were_dropped_are_dropped():
    snapshot, tally = made()
    old = snapshot.topology.scope(("zone",), None)
    by_zone(snapshot, tally)
    size = tally.nbytes
    old.dropped = True
    tally.by_domain(snapshot.topology, snapshot.topology.domains("zone"), snapshot.topology.scope((), None))
    assert tally.nbytes == size


def test_it_grows():
    _, tally = made()
    tally.add(3, 7)
    tally.grow(1000)
    assert (tally.counts.size, int(tally.counts[3])) == (1000, 7)


def test_the_book_finds_those_that_mean_a_group():
    book = TallyBook()
    live = Tally(PodQuery(None, WEB, terminating=False), 8)
    dying_too = Tally(PodQuery(frozenset(("a",)), LabelSelector((Requirement("app", Operator.EXISTS),))), 8)
    for tally in (live, dying_too):
        book.add(tally)
    assert set(book.meaning("a", {"app": "web"}, terminating=False)) == {live, dying_too}
    assert book.meaning("a", {"app": "web"}, terminating=True) == [dying_too]
    assert book.meaning("b", {"app": "web"}, terminating=False) == [live]
    assert book.meaning("a", {}, terminating=False) == []
    book.discard(live)
    assert book.meaning("b", {"app": "web"}, terminating=False) == []
    assert len(book) == 1
