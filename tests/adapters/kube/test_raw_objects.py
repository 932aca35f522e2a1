"""Whole objects for extenders: kept while shown, else read."""

import orjson
import pytest

from moorage.adapters.kube.errors import Unreachable
from moorage.adapters.kube.raw_objects import RawObjects
from tests.kit.fakes import pod_ref


class Client:
    def __init__(self, **answers):
        self.answers = answers
        self.asked: list[str] = []

    async def get(self, path):
        self.asked.append(path)
        answer = self.answers.get(path.rsplit("/", 1)[-1])
        if answer is None:
            raise Unreachable("away", sent=False)
        return answer


def obj(name, **more):
    meta = {"name": name, "uid": name, "namespace": "default", "managedFields": [1]}
    return {"apiVersion": "v1", "kind": "X", "metadata": meta, **more}


def raw(client=None, **keep):
    objects = RawObjects(client or Client())  # type: ignore[arg-type]
    objects.keep(**({"pending": True, "nodes": True, "bound": True} | keep))
    return objects


async def test_what_streams_show_is_at_hand_without_bookkeeping():
    objects = raw()
    objects.pending_pod(obj("web", spec={"x": 1}))
    objects.bound_pod(obj("db"))
    objects.node(obj("a"))
    shown = orjson.loads(await objects.pod(pod_ref("web")))
    assert shown == {"metadata": {"name": "web", "uid": "web", "namespace": "default"}, "spec": {"x": 1}}
    assert orjson.loads(await objects.pod(pod_ref("db")))["metadata"]["name"] == "db"
    assert len(await objects.nodes(["a", "a"])) == 2


async def test_what_is_gone_is_read_and_not_found():
    client = Client(nodes={"items": []})
    objects = raw(client)
    objects.pending_pod(obj("web"))
    objects.bound_pod(obj("db"))
    objects.node(obj("a"))
    objects.left_pending("web")
    objects.pod_gone("db")
    objects.node_gone("a")
    for name in ("web", "db"):
        with pytest.raises(LookupError, match="cannot be read: away"):
            await objects.pod(pod_ref(name))
    with pytest.raises(LookupError, match="node a is gone"):
        await objects.nodes(["a"])


async def test_what_was_not_kept_is_read_once():
    client = Client(nodes={"items": [obj("a"), obj("b")]}, web=obj("web"))
    objects = raw(client, nodes=False)
    objects.node(obj("a"))
    objects.keep(pending=True, nodes=True, bound=False)
    for _ in range(2):
        assert len(await objects.nodes(["b", "a"])) == 2
    assert client.asked == ["/api/v1/nodes"]
    assert orjson.loads(await objects.pod(pod_ref("web")))["metadata"]["uid"] == "web"
    with pytest.raises(LookupError, match="pod default/web is gone"):
        await objects.pod(pod_ref("web", "another"))
