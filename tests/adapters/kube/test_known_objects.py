"""A receiver is told what is new and what is gone, each once."""

from typing import Any

import pytest

from moorage.adapters.kube.known_objects import KnownObjects


class Receiver:
    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.malformed: list[str] = []
        self.bad = False
        self.known: KnownObjects[str] = KnownObjects(
            self.apply, lambda token: self.calls.append(("delete", token)), self.on_malformed
        )

    def apply(self, obj: dict[str, Any]) -> str:
        if self.bad:
            raise ValueError("bad object")
        token = f"{obj['metadata']['uid']}@{obj['metadata']['resourceVersion']}"
        self.calls.append(("apply", token))
        return token

    def on_malformed(self, key: str, error: Exception) -> None:
        self.malformed.append(f"{key}: {error}")

    def take(self) -> list[tuple[str, str]]:
        calls, self.calls = self.calls, []
        return calls


def thing(name: str = "a", uid: str = "1", version: int = 1, namespace: str = "") -> dict[str, Any]:
    meta = {"name": name, "uid": uid, "resourceVersion": str(version)}
    return {"metadata": meta | ({"namespace": namespace} if namespace else {})}


@pytest.fixture
def receiver() -> Receiver:
    return Receiver()


def test_a_version_is_told_once(receiver):
    assert receiver.known.observe(thing(version=1)) == "a"
    assert receiver.known.observe(thing(version=1)) == "a"
    receiver.known.observe(thing(version=2))
    assert receiver.take() == [("apply", "1@1"), ("apply", "1@2")]
    assert len(receiver.known) == 1


def test_a_delete_hands_back_the_latest_token(receiver):
    receiver.known.observe(thing(version=1))
    receiver.known.observe(thing(version=2))
    receiver.take()
    receiver.known.vanish(thing(version=3))
    receiver.known.vanish(thing(version=3))
    assert receiver.take() == [("delete", "1@2")]
    assert len(receiver.known) == 0


def test_a_name_used_again_is_a_delete_and_then_an_add(receiver):
    receiver.known.observe(thing(uid="1"))
    receiver.known.observe(thing(uid="2"))
    assert receiver.take() == [("apply", "1@1"), ("delete", "1@1"), ("apply", "2@1")]


def test_a_late_delete_of_the_former_object_is_ignored(receiver):
    receiver.known.observe(thing(uid="2"))
    receiver.take()
    receiver.known.vanish(thing(uid="1"))
    assert receiver.take() == []


def test_the_same_name_in_two_namespaces_is_two_objects(receiver):
    keys = {receiver.known.observe(thing(uid=name, namespace=name)) for name in ("x", "y")}
    assert keys == {"x/a", "y/a"}
    receiver.take()
    receiver.known.vanish(thing(uid="x", namespace="x"))
    assert receiver.take() == [("delete", "x@1")]


def test_what_a_list_did_not_show_is_missing(receiver):
    for name in "abc":
        receiver.known.observe(thing(name, uid=name))
    assert receiver.known.missing({"a", "c"}) == ["b"]


def test_a_malformed_object_is_reported_once_per_version_and_never_deleted(receiver):
    receiver.bad = True
    assert receiver.known.observe(thing()) == "a"
    receiver.known.observe(thing())
    assert receiver.malformed == ["a: bad object"]
    receiver.known.vanish(thing())
    assert receiver.take() == []
    assert len(receiver.known) == 0


def test_a_malformed_update_leaves_what_was_applied_before(receiver):
    receiver.known.observe(thing(version=1))
    receiver.bad = True
    receiver.known.observe(thing(version=2))
    receiver.bad = False
    receiver.known.vanish(thing(version=3))
    assert receiver.take() == [("apply", "1@1"), ("delete", "1@1")]


@pytest.mark.parametrize("broken", [{}, {"metadata": {}}, {"metadata": {"name": "a"}}, {"metadata": None}])
def test_an_object_without_identity_is_malformed(receiver, broken):
    assert receiver.known.observe(broken) is None
    assert len(receiver.malformed) == 1
    assert len(receiver.known) == 0


def test_all_is_told_again_after_distrust(receiver):
    """But each once, and what is gone meanwhile is gone."""
    for name in "ab":
        receiver.known.observe(thing(name))
    receiver.take()
    receiver.known.distrust()
    for _ in range(2):
        receiver.known.observe(thing("a"))
    receiver.known.vanish(thing("b"))
    assert receiver.take() == [("apply", "1@1"), ("delete", "1@1")]
