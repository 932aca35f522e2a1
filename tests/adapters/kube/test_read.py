"""Reading one pod."""

import pytest

from moorage.adapters.kube.errors import NotFound, ServerError, Unreachable
from moorage.adapters.kube.read import KubePodReader
from moorage.runtime.ports import PodReadError
from tests.kit.fakes import FakeClient, plain_pod, pod_ref


def convert(obj):
    return plain_pod(obj["metadata"]["name"], obj["metadata"]["uid"])


async def test_it_gives_what_is_there_whatever_its_uid():
    client = FakeClient({"metadata": {"name": "p", "uid": "new"}})
    pod = await KubePodReader(client, convert).fetch(pod_ref("p", "old"))
    assert pod is not None
    assert (pod.name, pod.uid) == ("p", "new")
    assert client.requests[0].path == "/api/v1/namespaces/default/pods/p"


async def test_no_pod_is_an_answer():
    assert await KubePodReader(FakeClient(NotFound(404)), convert).fetch(pod_ref()) is None


@pytest.mark.parametrize("error", [ServerError(503), Unreachable("reset", sent=True)])
async def test_no_answer_is_an_error_of_its_own(error):
    with pytest.raises(PodReadError):
        await KubePodReader(FakeClient(error), convert).fetch(pod_ref())
