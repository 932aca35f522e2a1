"""DeviceClasses as JSON, and API servers without them."""

import pytest
from hypothesis import given

from moorage.adapters.kube.device_classes import DEVICE_CLASSES_PATH, read_device_class, serves_device_classes
from moorage.adapters.kube.errors import Forbidden
from moorage.adapters.kube.fields import Reader
from moorage.core.model.device_class import DeviceClass
from tests.adapters.kube.test_fields import anything
from tests.kit.fake_api import Answer, FakeApi


def read(spec=None, **metadata):
    return read_device_class({"metadata": {"name": "fast", **metadata}, "spec": spec}, Reader())


def test_a_class_names_a_resource_or_does_not():
    assert read({"extendedResourceName": "example.com/gpu"}) == DeviceClass("fast", "example.com/gpu")
    assert read({}) == read() == DeviceClass("fast")
    assert read(creationTimestamp="1970-01-01T00:01:00Z").created == 60.0


@given(value=anything)
def test_whatever_comes_it_does_not_raise(value):
    read(value)
    read({"extendedResourceName": value}, creationTimestamp=value)


async def test_an_api_server_may_not_have_them(caplog):
    async with FakeApi() as api:
        assert await serves_device_classes(api.client())
        assert caplog.text == ""
        api.on("GET", DEVICE_CLASSES_PATH, Answer(404))
        assert not await serves_device_classes(api.client())
        assert caplog.text.count("has no DeviceClasses (resource.k8s.io/v1)") == 1
        api.on("GET", DEVICE_CLASSES_PATH, Answer(403))
        with pytest.raises(Forbidden):
            await serves_device_classes(api.client())
