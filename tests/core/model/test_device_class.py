"""What a DeviceClass stands for."""

from moorage.core.model.device_class import DeviceClass


def test_the_resources_of_a_class():
    implicit = "deviceclass.resource.kubernetes.io/fast"
    assert DeviceClass("fast").resources == (implicit,)
    assert DeviceClass("fast", "example.com/gpu").resources == (implicit, "example.com/gpu")
