"""No decision before the pods that wait are known; and no waiting for one that does not come."""

from moorage.runtime.first_sight import FirstSight


class Rig:
    def __init__(self):
        self.now = 100.0
        self.sight = FirstSight(lambda: self.now)


def test_it_opens_when_all_that_were_pending_have_been_seen():
    rig = Rig()
    rig.sight.saw("early")
    assert not rig.sight.is_open()
    rig.sight.expect(["early", "late"])
    assert not rig.sight.is_open()
    rig.sight.saw("late")
    assert rig.sight.is_open()


def test_nothing_pending_is_nothing_to_wait_for():
    rig = Rig()
    rig.sight.expect([])
    assert rig.sight.is_open()


def test_one_that_never_comes_is_waited_for_only_so_long():
    rig = Rig()
    rig.sight.expect(["deleted"])
    assert not rig.sight.is_open()
    rig.now += 4.9
    assert not rig.sight.is_open()
    rig.now += 0.1
    assert rig.sight.is_open()


def test_the_patience_begins_when_it_is_first_asked():
    rig = Rig()
    rig.now += 60
    assert not rig.sight.is_open()


def test_once_open_it_stays_open():
    rig = Rig()
    rig.sight.expect([])
    assert rig.sight.is_open()
    rig.sight.expect(["more"])
    assert rig.sight.is_open()
