"""The configuration that is printed: valid for kube-scheduler, and with reasons; URLs that cannot work are refused."""

import pytest
import yaml

from moorage.adapters.extender_server.chart_values import SECRET, chart_values
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
    url = "https://10.1.2.3:10270/scheduler" if way is Way.HELM else LOCAL
    printed = yaml.safe_load(text(Wanted(url, way, bind)))
    if way is Way.CONFIGMAP:
        printed = yaml.safe_load(printed["data"]["config.yaml"])
    (endpoint,) = read_config(printed).extenders
    assert endpoint.extender.name == url
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


def test_certificates_need_a_mount_of_their_own_in_a_static_pod():
    words = "files of tlsConfig need a mount"
    assert words in text(Wanted("https://10.1.2.3:10270/s", Way.KUBEADM))
    assert words in text(Wanted("https://10.1.2.3:10270/s", Way.HELM))
    assert words not in text(Wanted("https://10.1.2.3:10270/s", Way.K3S))
    assert words not in text(Wanted(LOCAL, Way.KUBEADM))


def test_the_charts_extender_is_installed_where_the_url_says():
    printed = text(Wanted("https://10.1.2.3:10270/scheduler", Way.HELM, bind=True))
    assert "--set 'extender.service.clusterIP=10.1.2.3'" in printed
    assert f"create secret generic {SECRET}" in printed
    assert "their replacements included" in printed
    plain = text(Wanted("http://10.1.2.3:30123/scheduler", Way.HELM))
    assert "secret" not in plain
    assert "clusterIP" not in plain
    assert "--set 'extender.service.nodePort=30123'" in plain


@pytest.mark.parametrize(
    ("url", "more", "expected"),
    [
        ("http://10.1.2.3:10270/scheduler/", {}, {"service.clusterIP": "10.1.2.3"}),
        (
            "http://[fd00::7]:9443/v2",
            {},
            {"service.clusterIP": "fd00::7", "listen.port": "9443", "listen.host": "::", "prefix": "/v2"},
        ),
        (
            "http://10.1.2.3:32767",
            {},
            {"service.type": "NodePort", "service.nodePort": "32767", "prefix": "/"},
        ),
        ("http://a.example.org:10270/scheduler", {"full": True}, {"full": "true"}),
        (
            "https://a.example.org:10270/scheduler",
            {"client_certificates": True},
            {"tls.secretName": SECRET, "tls.clientCA": "true"},
        ),
        (
            "https://a.example.org:10270/scheduler",
            {"bind": True, "scheduler_names": ("default-scheduler", "b")},
            {
                "tls.secretName": SECRET,
                "tls.clientCA": "true",
                "bind.enabled": "true",
                "bind.schedulerNames": "{default-scheduler,b}",
            },
        ),
    ],
)
def test_values_of_the_chart(url, more, expected):
    values = chart_values(url, **more)
    assert values == {"extender.enabled": "true"} | {
        f"extender.{key}": value for key, value in expected.items()
    }


def test_an_extender_that_writes_the_status_is_alone():
    values = chart_values("http://a.example.org:10270/scheduler", write_status=True)
    assert values == {"extender.enabled": "true", "extender.writeStatus": "true", "scheduler.replicas": "0"}


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://127.0.0.1:10270/scheduler", "127.0.0.1 is the machine itself"),
        ("http://10.1.2.3/scheduler", "name the port"),
        ("http://10.1.2.3:443/scheduler", "1024 or above"),
        ("http://moorage-extender.moorage.svc:10270/scheduler", "is the name of a Service"),
    ],
)
def test_where_the_chart_cannot_put_it(url, words):
    with pytest.raises(BadUrl, match=words):
        check_url(url, Way.HELM)


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
