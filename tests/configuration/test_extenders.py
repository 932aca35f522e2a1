"""The field ``extenders``."""

import base64

import pytest

from moorage.adapters.extender.endpoint import DEFAULT_TIMEOUT, Tls
from moorage.configuration.read import ConfigError, read_config
from moorage.core.model.extender import Extender, Verb
from moorage.core.plugins.node_resources_fit import NodeResourcesFit

URL = "http://x/ext/"


def read(*extenders, **more):
    return read_config({"extenders": [{"urlPrefix": URL, **e} for e in extenders], **more})


def one(**fields):
    (endpoint,) = read(fields).extenders
    return endpoint


def fit(profile):
    return next(p for p in profile.plugins if isinstance(p, NodeResourcesFit))


def test_all_fields():
    endpoint = one(
        filterVerb="f",
        prioritizeVerb="p",
        preemptVerb="e",
        bindVerb="b",
        weight=7,
        enableHTTPS=True,
        httpTimeout="1m0.5s",
        nodeCacheCapable=True,
        ignorable=True,
        managedResources=[{"name": "example.com/gpu"}],
        tlsConfig={
            "serverName": "s",
            "certFile": "c",
            "keyFile": "k",
            "caData": base64.b64encode(b"x").decode(),
        },
    )
    assert endpoint.extender == Extender(
        URL, 0, frozenset(Verb), True, 7, True, frozenset({"example.com/gpu"})
    )
    assert endpoint.paths == {Verb.FILTER: "f", Verb.PRIORITIZE: "p", Verb.PREEMPT: "e"}
    assert (endpoint.bind_path, endpoint.timeout) == ("b", 60.5)
    assert (endpoint.node_cache_capable, endpoint.https) == (True, True)
    assert endpoint.tls == Tls(False, "s", "c", "k", "", b"", b"", b"x")
    assert endpoint.url("f") == "http://x/ext/f"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (None, DEFAULT_TIMEOUT),
        ("0", DEFAULT_TIMEOUT),
        ("0s", DEFAULT_TIMEOUT),
        ("100ms", 0.1),
        ("1h", 3600.0),
    ],
)
def test_timeouts(text, seconds):
    assert one(httpTimeout=text).timeout == seconds


def test_every_profile_has_them_all_and_the_ignorable_ones_last():
    configuration = read(
        {"ignorable": True, "filterVerb": "late"},
        {"filterVerb": "early"},
        profiles=[{"schedulerName": "a"}, {"schedulerName": "b"}],
    )
    assert [endpoint.paths[Verb.FILTER] for endpoint in configuration.extenders] == ["early", "late"]
    for profile in configuration.profiles.values():
        assert [extender.number for extender in profile.extenders] == [1, 0]


def test_resources_that_an_extender_looks_after_are_not_counted():
    managed = [{"name": "a.b/c", "ignoredByScheduler": True}, {"name": "a.b/d"}]
    args = {"name": "NodeResourcesFit", "args": {"ignoredResources": ["e.f/g"]}}
    (profile,) = read({"managedResources": managed}, profiles=[{"pluginConfig": [args]}]).profiles.values()
    assert fit(profile).ignored == frozenset({"a.b/c"}), "the extender's go before the arguments, as upstream"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"urlPrefix": "x:1"}, "extenders[0].urlPrefix: must be an http or https URL, not 'x:1'"),
        ({"prioritizeVerb": "p"}, "extenders[0].weight: must be positive where there is a prioritizeVerb"),
        ({"verb": "p"}, "extenders[0].verb: is not supported"),
        ({"httpTimeout": "5"}, "extenders[0].httpTimeout: must be a duration such as 500ms or 5s, not '5'"),
        ({"httpTimeout": "-1s"}, "extenders[0].httpTimeout: must be a duration"),
        (
            {"managedResources": [{"name": "cpu"}]},
            "managedResources[0].name: 'cpu' is not the name of an ext",
        ),
        ({"managedResources": [{"name": "a.b/c"}] * 2}, "managedResources[1].name: 'a.b/c' is managed twice"),
        ({"tlsConfig": {"certFile": "c"}}, "extenders[0].tlsConfig: a certificate needs its key"),
        ({"tlsConfig": {"insecure": True, "caFile": "c"}}, "extenders[0].tlsConfig.insecure: does not go"),
        ({"tlsConfig": {"caData": "%"}}, "extenders[0].tlsConfig.caData: must be base64"),
    ],
)
def test_what_is_wrong_is_named(fields, message):
    with pytest.raises(ConfigError) as caught:
        one(**fields)
    assert message in str(caught.value)


def test_only_one_can_bind():
    with pytest.raises(ConfigError, match="extenders: only one extender can bind, but 2 have a bindVerb"):
        read({"bindVerb": "b"}, {"bindVerb": "b"})
