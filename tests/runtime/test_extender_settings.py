"""The options of the extender, from the environment and on top of it."""

import pytest

from moorage.runtime.extender_settings import ExtenderSettings
from moorage.runtime.settings import Listen, SettingsError


def test_defaults_are_harmless():
    settings = ExtenderSettings.from_env({})
    assert settings.listen == Listen("127.0.0.1", 10270)
    assert not settings.enable_bind
    assert not settings.full
    assert settings.scheduler_name == ("default-scheduler",)


def test_every_option_is_a_variable():
    settings = ExtenderSettings.from_env(
        {
            "MOORAGE_LISTEN": ":8443",
            "MOORAGE_PREFIX": "/v2",
            "MOORAGE_FULL": "yes",
            "MOORAGE_ENABLE_BIND": "1",
            "MOORAGE_WRITE_STATUS": "on",
            "MOORAGE_SCHEDULER_NAME": "a b",
            "MOORAGE_TLS_CERT": "c",
            "MOORAGE_TLS_KEY": "k",
            "MOORAGE_CLIENT_CA": "ca",
            "MOORAGE_DRAIN": "10s",
            "MOORAGE_DEBUG_LISTEN": "127.0.0.1:9",
            "MOORAGE_MAX_BODY": "64",
            "MOORAGE_KUBECONFIG": "",
        }
    )
    assert settings == ExtenderSettings(
        Listen("0.0.0.0", 8443),  # noqa: S104
        "/v2",
        True,
        True,
        ("a", "b"),
        True,
        "c",
        "k",
        "ca",
        None,
        None,
        10.0,
        Listen("127.0.0.1", 9),
        64,
    )
    assert settings.changed(prefix="/x", full=None).prefix == "/x"
    assert settings.changed(full=None).full


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"MOORAGE_LISTEN": "off"}, "MOORAGE_LISTEN: must be HOST:PORT"),
        ({"MOORAGE_DEBUG_LISTEN": ":9"}, "debug-listen: must be a loopback address"),
        ({"MOORAGE_MAX_BODY": "lots"}, "MOORAGE_MAX_BODY: must be a whole number"),
        ({"MOORAGE_MAX_BODY": "257"}, "max-body: must be between 1 and 256 MiB"),
        ({"MOORAGE_MAX_BODY": "0"}, "max-body: must be between 1 and 256 MiB"),
        ({"MOORAGE_FULL": "maybe"}, "MOORAGE_FULL: must be true or false"),
        ({"MOORAGE_PREFIX": "sched uler"}, "prefix: must be a path"),
        ({"MOORAGE_PREFIX": "x"}, "prefix: must be a path"),
        ({"MOORAGE_TLS_CERT": "c"}, "tls-key: is missing"),
        ({"MOORAGE_TLS_KEY": "k"}, "tls-cert: is missing"),
        ({"MOORAGE_CLIENT_CA": "ca"}, "client-ca: needs tls-cert"),
    ],
)
def test_what_makes_no_sense_is_named(given, words):
    with pytest.raises(SettingsError, match=words):
        ExtenderSettings.from_env(given)


def test_an_empty_name():
    with pytest.raises(SettingsError, match="scheduler-name"):
        ExtenderSettings(scheduler_name=())
