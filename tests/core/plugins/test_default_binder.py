"""DefaultBinder."""

from moorage.core.framework.interface import BindPlugin, FilterPlugin
from moorage.core.plugins.default_binder import DefaultBinder
from tests.kit.models import make_pod


def test_it_takes_every_pod_and_rejects_none():
    binder = DefaultBinder()
    assert binder.binds(make_pod("web"))
    assert binder.wakes_on() == ()
    assert isinstance(binder, BindPlugin)
    assert not isinstance(binder, FilterPlugin)
