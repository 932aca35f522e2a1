"""The extender over real HTTP on loopback: the verbs, and all that is wrong with requests."""

import asyncio
import socket
import ssl

import aiohttp
import orjson
import pytest

from moorage.adapters.extender_server.guard import Limits
from moorage.adapters.extender_server.server import listens_on_loopback
from moorage.adapters.extender_server.tls import TlsFiles
from moorage.core.model.policy import NodeRules, PreemptionRules, Preference, Scoring
from tests.controlplane.certs import Authority
from tests.kit.builders import make_node, make_pod, read_pod
from tests.kit.extender_rig import JSON, ExtenderRig
from tests.kit.policy_builders import labelled, make_policy

SSD = labelled({"disk": "ssd"})
NODES = {"a": {}, "b": {"disk": "ssd"}, "c": {}}
POLICY = make_policy(
    "p",
    nodes=NodeRules(selector=SSD),
    scoring=Scoring(prefer=(Preference(selector=SSD, expression=None, weight=1),)),
    preemption=PreemptionRules(never=True),
)
TEXT = 'node(s) didn\'t match the node selector of policy "p"'


def args(*names, **more):
    return {"Pod": make_pod(schedulerName="default-scheduler"), "NodeNames": list(names), **more}


@pytest.fixture
async def rig():
    async with ExtenderRig(POLICY, nodes=NODES) as rig:
        yield rig


async def test_the_verbs(rig):
    status, answer = await rig.post("/scheduler/filter", args("a", "b"))
    assert (status, answer) == (
        200,
        {
            "Nodes": None,
            "NodeNames": ["b"],
            "FailedNodes": {},
            "FailedAndUnresolvableNodes": {"a": TEXT},
            "Error": "",
        },
    )
    assert await rig.post("/scheduler/prioritize", args("a", "b")) == (
        200,
        [{"Host": "a", "Score": 0}, {"Host": "b", "Score": 10}],
    )
    victims = {
        "Pod": make_pod(),
        "NodeNameToMetaVictims": {"b": {"Pods": [{"UID": "u"}], "NumPDBViolations": 0}},
    }
    assert await rig.post("/scheduler/preempt", victims) == (200, {"NodeNameToMetaVictims": {}})
    pod = read_pod("web", schedulerName="default-scheduler")
    rig.reader.pods["web"] = pod
    binding = {"PodName": "web", "PodNamespace": "default", "PodUID": pod.uid, "Node": "b"}
    assert await rig.post("/scheduler/bind", binding) == (200, {"Error": ""})
    assert [p.node_name for p in rig.binder.bound] == ["b"]
    assert await rig.post("/scheduler/bind", {**binding, "Node": "a", "PodUID": "x"}) == (
        200,
        {"Error": "the pod is gone"},
    )


async def test_whole_nodes_come_back_as_they_were_sent(rig):
    nodes = [make_node(name, labels={"disk": "ssd", "odd": "label"}) for name in ("a", "b", "new")]
    body = {"Pod": make_pod(), "Nodes": {"metadata": {}, "items": nodes}, "NodeNames": None}
    _, answer = await rig.post("/scheduler/filter", body)
    assert answer["Nodes"]["items"] == nodes[1:]  # a is known to have no SSD; new is not known, and has one
    assert answer["NodeNames"] is None
    _, scores = await rig.post("/scheduler/prioritize", body)
    assert {each["Host"]: each["Score"] for each in scores} == {"a": 0, "b": 10, "new": 10}


@pytest.mark.parametrize("path", ["predicates", "prioritize", "preemption", "bind"])
async def test_the_older_paths(rig, path):
    status, _ = await rig.post(f"/scheduler/{path}", b"{}")
    assert status == 400


async def test_a_prefix():
    async with ExtenderRig(prefix="/a/b/") as rig:
        assert (await rig.post("/a/b/filter", args()))[0] == 200
        assert (await rig.post("/scheduler/filter", args()))[0] == 404
        assert (await rig.post("/scheduler/predicates", args()))[0] == 200
    async with ExtenderRig(prefix="/") as rig:
        assert (await rig.post("/filter", args()))[0] == 200


async def test_health_and_metrics(rig):
    assert (await rig.get("/healthz"))[0] == 200
    assert await rig.get("/readyz") == (200, "ok\n")
    rig.unready = "not yet"
    assert await rig.get("/readyz") == (503, "not yet\n")
    assert await rig.post("/scheduler/filter", args("a")) == (200, {"Error": "not yet"})
    assert await rig.post("/scheduler/prioritize", args("a")) == (503, {"Error": "not yet"})
    assert (await rig.post("/scheduler/preempt", {"Pod": make_pod()}))[0] == 503
    _, text = await rig.get("/metrics")
    assert 'moorage_extender_requests_total{code="503",outcome="error",verb="prioritize"} 1.0' in text
    assert 'moorage_extender_request_duration_seconds_count{verb="filter"} 1.0' in text


async def test_wrong_requests(rig):
    async with rig.session.get(f"{rig.base}/scheduler/filter") as response:
        assert (response.status, response.headers["Allow"]) == (405, "POST")
        assert orjson.loads(await response.read()) == {"Error": "GET /scheduler/filter: Method Not Allowed"}
    assert (await rig.post("/elsewhere", b"{}"))[0] == 404
    assert await rig.post("/scheduler/filter", b'{"Pod"', headers=JSON) == (
        400,
        {"Error": "not JSON: unexpected end of data: line 1 column 7 (char 6)"},
    )
    status, answer = await rig.post("/scheduler/filter", b"{}", headers={"Content-Type": "text/plain"})
    assert (status, answer["Error"]) == (415, "the content must be application/json, not text/plain")
    assert (await rig.post("/scheduler/filter", {"Pod": {"metadata": {}}, "NodeNames": []}))[1] == {
        "Error": "Pod: metadata.name: is missing"
    }


async def test_a_huge_body(caplog):
    async with ExtenderRig(limits=Limits(body=1 << 18)) as rig:
        assert (await rig.post("/scheduler/filter", b" " * (1 << 18)))[0] == 400, "is read, and is no JSON"

        async def pieces():
            for _ in range(20):
                yield b" " * 100_000

        for _ in range(2):
            status, answer = await rig.post("/scheduler/filter", b" " * (1 << 19))
            assert status == 413
            assert answer["Error"] == (
                "the body has 0.5 MiB, more than the 0.25 MiB that are read (--max-body): have kube-scheduler send the "
                "names of nodes, by nodeCacheCapable: true"
            )
        async with rig.session.post(
            f"{rig.base}/scheduler/prioritize", data=pieces(), headers=JSON
        ) as response:
            assert response.status == 413
            assert (await response.json())["Error"].startswith("the body is larger than the 0.25 MiB")
        assert (await rig.post("/scheduler/filter", args()))[0] == 200
        assert caplog.text.count("is refused: the body has 0.5 MiB") == 1, "the log is not flooded"
    async with ExtenderRig(limits=Limits(bodies=10_000)) as rig:
        status, answer = await rig.post("/scheduler/filter", b" " * 20_000)
        assert (status, answer) == (503, {"Error": "too much is being asked at the same time"})
        assert (await rig.post("/scheduler/filter", args()))[0] == 200


async def test_a_fault_of_ours_shows_no_traceback(rig, caplog):
    def broken(*_):
        raise RuntimeError("secret")

    rig.service.filter = broken
    status, answer = await rig.post("/scheduler/filter", args("a"))
    assert (status, answer) == (500, {"Error": "internal error; the extender's log has the details"})
    assert "secret" in caplog.text


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"POST /sched",
        b"POST /scheduler/filter HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
    ],
)
async def test_slow_clients_are_cut_off(sent):
    """Whether nothing comes, half a head, or half a body."""
    async with ExtenderRig(limits=Limits(request=0.05, idle=0.05)) as rig:
        reader, writer = await asyncio.open_connection(*rig.server.address)
        writer.write(sent)
        assert await _end(reader) is not None
        writer.close()
        rig.server._guards.limits = Limits()
        assert (await rig.post("/scheduler/filter", args()))[0] == 200


async def test_a_client_that_does_not_read_is_cut_off():
    async with ExtenderRig(limits=Limits(stalled=0.05)) as rig:
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.setblocking(False)
        await asyncio.get_running_loop().sock_connect(client, rig.server.address)
        _, writer = await asyncio.open_connection(sock=client, limit=1)
        names = [f"{'n' * 200}-{i}" for i in range(100_000)]  # far more than the kernel keeps for us
        body = orjson.dumps(args(*names))
        writer.write(
            b"POST /scheduler/filter HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n" % len(body)
        )
        writer.write(body)
        for _ in range(2000):  # until the server has given up on us
            await asyncio.sleep(0.01)
            if not rig.server._guards.by_handler:
                break
        assert not rig.server._guards.by_handler
        writer.close()
        assert (await rig.post("/scheduler/filter", args()))[0] == 200


async def test_too_many_connections_are_turned_away():
    async with ExtenderRig(limits=Limits(connections=2)) as rig:
        held = [await asyncio.open_connection(*rig.server.address) for _ in range(2)]
        reader, writer = await asyncio.open_connection(*rig.server.address)
        assert await _end(reader) is not None
        writer.close()
        for _, one in held:
            one.close()
            await one.wait_closed()
        while rig.server._guards.by_handler:
            await asyncio.sleep(0)
        assert (await rig.post("/scheduler/filter", args()))[0] == 200


async def test_a_connection_is_kept_between_requests(rig):
    """No deadline runs while nothing is asked."""

    def idle():
        (guard,) = rig.server._guards.by_handler.values()
        return guard._reading is None

    await rig.post("/scheduler/filter", args())
    assert idle()
    await rig.get("/healthz")
    assert idle()
    await rig.post("/elsewhere", b"{}")
    await rig.post("/scheduler/filter", b"{")
    assert idle()


async def test_certificates(tmp_path):
    """With an authority for clients, verbs are only for those who show a certificate of it; health is for all."""
    authority, others = Authority(tmp_path), Authority(_folder(tmp_path, "others"))
    server, client = authority.issue("server", hosts=("127.0.0.1",)), authority.issue("client")
    stranger = others.issue("stranger")
    files = TlsFiles(str(server.certificate), str(server.key), str(authority.certificate))
    async with ExtenderRig(tls=files) as rig:
        nobody = ssl.create_default_context(cafile=str(authority.certificate))
        somebody = ssl.create_default_context(cafile=str(authority.certificate))
        somebody.load_cert_chain(str(client.certificate), str(client.key))
        wrong = ssl.create_default_context(cafile=str(authority.certificate))
        wrong.load_cert_chain(str(stranger.certificate), str(stranger.key))
        for verb in ("filter", "prioritize", "preempt", "bind"):
            status, answer = await rig.post(f"/scheduler/{verb}", args(), ssl=nobody)
            assert (status, answer) == (403, {"Error": "a client certificate is needed"})
        async with rig.session.get(f"{rig.base}/readyz", ssl=nobody) as response:
            assert response.status == 200
        assert (await rig.post("/scheduler/filter", args(), ssl=somebody))[0] == 200
        with pytest.raises(aiohttp.ClientError):
            await rig.post("/scheduler/filter", args(), ssl=wrong)


async def test_it_finishes_what_was_begun():
    async with ExtenderRig(nodes=NODES) as rig:
        pod = read_pod("web", schedulerName="default-scheduler")
        rig.reader.pods["web"] = pod
        rig.binder.gate.clear()
        binding = {"PodName": "web", "PodNamespace": "default", "PodUID": pod.uid, "Node": "b"}
        asked = asyncio.ensure_future(rig.post("/scheduler/bind", binding))
        while not rig.binder.most_at_once:
            await asyncio.sleep(0)
        draining = asyncio.ensure_future(rig.server.drain(0.05))
        await asyncio.sleep(0)
        async with rig.session.get(f"{rig.base}/healthz") as response:
            assert response.headers["Connection"] == "close"
        await draining
        stopping = asyncio.ensure_future(rig.server.stop(30.0))
        await asyncio.sleep(0.05)
        assert not asked.done()
        rig.binder.gate.set()
        assert await asked == (200, {"Error": ""})
        await stopping


def test_loopback():
    assert all(map(listens_on_loopback, ("127.0.0.1", "127.0.5.5", "::1", "localhost")))
    assert not any(map(listens_on_loopback, ("0.0.0.0", "::", "10.0.0.1", "example.org", "")))  # noqa: S104


async def _end(reader):
    """What comes before the connection's end."""
    try:
        return await asyncio.wait_for(reader.read(), 30)
    except ConnectionError:
        return b""


def _folder(path, name):
    (path / name).mkdir()
    return path / name
