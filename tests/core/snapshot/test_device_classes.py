"""DeviceClasses by the resources they stand for."""

from hypothesis import given
from hypothesis import strategies as st

from moorage.core.model.device_class import DeviceClass
from moorage.core.snapshot.device_classes import DeviceClasses

GPU, IMPLICIT = "example.com/gpu", "deviceclass.resource.kubernetes.io/"
classes = st.builds(
    DeviceClass, st.sampled_from("abc"), st.sampled_from(("", GPU, "x/y")), st.sampled_from((0.0, 1.0))
)


def filed(*given):
    known = DeviceClasses()
    for each in given:
        known.apply(each)
    return known


def test_a_class_stands_for_the_resource_it_names_and_for_its_own():
    named, plain = DeviceClass("a", GPU), DeviceClass("b")
    known = filed(named, plain)
    assert [known.of(r) for r in (GPU, IMPLICIT + "a", IMPLICIT + "b")] == [named, named, plain]
    assert known.of("example.com/other") is known.of("") is None


def test_of_several_the_youngest_counts_and_then_the_first_by_name():
    old, young, twin = DeviceClass("a", GPU, 1.0), DeviceClass("c", GPU, 2.0), DeviceClass("b", GPU, 2.0)
    assert filed(old, young).of(GPU) == filed(young, old).of(GPU) == young
    assert filed(young, twin).of(GPU) == filed(twin, young).of(GPU) == twin


def test_it_tells_what_was_before():
    known = DeviceClasses()
    first, second = DeviceClass("a", GPU), DeviceClass("a")
    assert known.apply(first) is None
    assert known.apply(second) == first
    assert (known.of(GPU), len(known)) == (None, 1)
    assert known.remove("a") == second
    assert (known.remove("a"), known.of(IMPLICIT + "a"), len(known)) == (None, None, 0)


@given(st.lists(st.one_of(classes, st.sampled_from("abc"))))
def test_any_sequence_of_changes_ends_as_if_only_the_end_had_come(changes):
    known = DeviceClasses()
    there: dict[str, DeviceClass] = {}
    for change in changes:
        if isinstance(change, str):
            assert known.remove(change) == there.pop(change, None)
        else:
            assert known.apply(change) == there.get(change.name)
            there[change.name] = change
    anew = filed(*there.values())
    for resource in (GPU, "x/y", *(IMPLICIT + name for name in "abc")):
        assert known.of(resource) == anew.of(resource)
