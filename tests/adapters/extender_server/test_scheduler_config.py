"""The configuration that is printed: valid for kube-scheduler, and with reasons; URLs that cannot work are refused."""

import pytest
import yaml

from moorage.adapters.extender_server.scheduler_config import (
    BadUrl,
    Wanted,
    Way,
    check_url,
    configuration,
    text,
)
from moorage.configuration.read import read_config

LOCAL = "http://127.0.0.1:10270/scheduler"


@pytest.mark.parametrize("way", Way)
@pytest.mark.parametrize("bind", [False, True])
def test_it_can_be_read_again(way, bind):
    """By the reader of such files that we have, which knows every field."""
    printed = yaml.safe_load(text(Wanted(LOCAL, way, bind)))
    if way is Way.CONFIGMAP:
        printed = yaml.safe_load(printed["data"]["config.yaml"])
    (endpoint,) = read_config(printed).extenders
    assert endpoint.extender.name == LOCAL
    assert endpoint.extender.weight == 5
    assert endpoint.extender.ignorable is not bind
    assert endpoint.extender.binds is bind
    assert endpoint.node_cache_capable
    assert endpoint.timeout == 5.0
    assert printed["percentageOfNodesToScore"] == 100


def test_tls_and_whole_nodes():
    wanted = Wanted("https://10.1.2.3:10270/scheduler/", bind=True, whole_nodes=True, weight=7, timeout=2.5)
    (extender,) = configuration(wanted)["extenders"]
    assert extender["urlPrefix"] == "https://10.1.2.3:10270/scheduler"
    assert extender["enableHTTPS"] is True
    assert set(extender["tlsConfig"]) == {"insecure", "caFile", "certFile", "keyFile"}
    assert (extender["nodeCacheCapable"], extender["weight"], extender["httpTimeout"]) == (False, 7, "2.5s")
    (plain,) = configuration(Wanted("https://10.1.2.3/s", ca_file="/ca"))["extenders"]
    assert plain["tlsConfig"] == {"insecure": False, "caFile": "/ca"}


def test_reasons_and_steps():
    printed = text(Wanted(LOCAL, Way.KUBEADM))
    assert "# Without the bind verb limits, pools and keepFree are best effort" in printed
    assert "--config=/etc/kubernetes/moorage-scheduler.yaml" in printed
    assert max(map(len, printed.splitlines())) < 130
    assert "kube-scheduler binds by itself what an ignorable extender refuses" in text(
        Wanted(LOCAL, bind=True)
    )


@pytest.mark.parametrize(
    "host", ["moorage", "moorage.kube-system", "moorage.kube-system.svc", "m.k.svc.cluster.local"]
)
def test_a_service_name_is_refused_for_a_scheduler_on_the_hosts_network(host):
    url = f"http://{host}:10270/scheduler"
    for way in Way:
        if way.host_network and host != "moorage.kube-system":
            with pytest.raises(BadUrl, match="Service"):
                check_url(url, way)
        else:
            check_url(url, way)


@pytest.mark.parametrize("host", ["10.0.0.1", "[fd00::1]", "localhost", "scheduler.example.org"])
def test_what_a_node_can_resolve_is_taken(host):
    check_url(f"http://{host}:10270/scheduler", Way.KUBEADM)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("127.0.0.1:10270", "must be http"),
        ("ftp://a/b", "must be http"),
        ("http:///scheduler", "must be http"),
        ("http://127.0.0.1:99999/s", "is none"),
        ("http://127.0.0.1/s?x=1", "must end with the path"),
    ],
)
def test_what_is_no_url(url, words):
    with pytest.raises(BadUrl, match=words):
        check_url(url, Way.PLAIN)


def test_binding_for_others_needs_tls():
    with pytest.raises(BadUrl, match="client certificates"):
        check_url("http://10.0.0.1:10270/scheduler", Way.PLAIN, bind=True)
    check_url("http://localhost:10270/scheduler", Way.PLAIN, bind=True)
    check_url("https://10.0.0.1:10270/scheduler", Way.PLAIN, bind=True)
