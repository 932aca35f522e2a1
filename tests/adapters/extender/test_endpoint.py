"""How an extender's server is checked, and who we are to it."""

import ssl
from dataclasses import replace

import pytest

from moorage.adapters.extender.client import ExtenderClient
from moorage.adapters.extender.endpoint import ExtenderEndpoint, Tls
from moorage.core.model.extender import Extender, Filtered, NoAnswer, Question, Verb
from tests.controlplane.certs import Authority
from tests.kit.extender import FakeExtender, keep
from tests.kit.fakes import pod_ref


def endpoint(url="https://x", **fields):
    paths = {Verb.FILTER: "filter"}
    return ExtenderEndpoint(Extender(url, verbs=frozenset(paths)), paths, node_cache_capable=True, **fields)


@pytest.mark.parametrize(
    ("fields", "checked"),
    [
        ({}, True),
        ({"https": True}, False),  # as in kube-scheduler, without an authority
        ({"tls": Tls(insecure=True)}, False),
        ({"tls": Tls(server_name="x")}, True),
    ],
)
def test_whether_the_server_is_checked(fields, checked):
    context = endpoint(**fields).ssl_context()
    assert (context.verify_mode is ssl.CERT_REQUIRED) is checked
    assert context.check_hostname is checked


class Objects:
    async def pod(self, ref):
        return b"{}"

    async def nodes(self, names):
        return []


async def ask(one):
    client = ExtenderClient(Objects(), [one])
    try:
        return await client.ask(Question(one.extender, Verb.FILTER, pod_ref("web"), ("a",)))
    finally:
        await client.close()


async def test_over_tls(tmp_path):
    """The server is checked by name and authority, and sees who we are: by files, and by data in the configuration."""
    authority = Authority(tmp_path)
    host, ours = authority.issue("host", hosts=("extender.test",)), authority.issue("ours")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(host.certificate, host.key)
    server.load_verify_locations(authority.certificate)
    server.verify_mode = ssl.CERT_REQUIRED
    files = Tls(False, "extender.test", str(ours.certificate), str(ours.key), str(authority.certificate))
    data = Tls(
        server_name="extender.test",
        cert_data=ours.certificate.read_bytes(),
        key_data=ours.key.read_bytes(),
        ca_data=authority.certificate.read_bytes(),
    )
    with FakeExtender(server, filter=keep("a")) as fake:
        for tls in (files, data):
            assert await ask(endpoint(fake.url, https=True, tls=tls)) == Filtered(("a",))
        for tls in (replace(data, server_name=""), replace(data, cert_data=b"", key_data=b"")):
            assert isinstance(await ask(endpoint(fake.url, https=True, tls=tls)), NoAnswer)
