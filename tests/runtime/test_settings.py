"""Settings: the environment, the command line on top, and errors that name what is wrong."""

import pytest

from moorage.runtime.settings import Listen, Settings, SettingsError


def test_the_defaults_are_usable_and_private():
    settings = Settings.from_env({})
    assert settings == Settings()
    assert settings.scheduler_name == ()
    assert settings.metrics_listen is not None
    assert settings.metrics_listen.host == "127.0.0.1"


def test_each_setting_is_a_variable():
    settings = Settings.from_env(
        {
            "MOORAGE_SCHEDULER_NAME": "a, b",
            "MOORAGE_KUBECONFIG": "/k",
            "MOORAGE_CONTEXT": "c",
            "MOORAGE_LEADER_ELECT": "false",
            "MOORAGE_LEASE_NAME": "l",
            "MOORAGE_LEASE_NAMESPACE": "ns",
            "MOORAGE_LEASE_DURATION": "4",
            "MOORAGE_RENEW_DEADLINE": "3s",
            "MOORAGE_RETRY_PERIOD": "0.5",
            "MOORAGE_NODE_READY_GUARD": "No",
            "MOORAGE_METRICS_LISTEN": "off",
            "MOORAGE_LIVENESS": "[::1]:8080",
            "MOORAGE_MAX_BINDS": "7",
            "MOORAGE_WATCH_SILENCE": "5",
            "MOORAGE_PENDING_INTERVAL": "6",
            "MOORAGE_CONFIG": "/etc/moorage/config.yaml",
            "MOORAGE_DEBUG_LISTEN": "[::1]:10271",
            "MOORAGE_SLOW_DECISION": "0.25s",
            "MOORAGE_UNKNOWN": "ignored",
            "OTHER": "ignored",
        }
    )
    assert settings == Settings(
        *(
            ("a", "b"),
            "/k",
            "c",
            False,
            "l",
            "ns",
            4.0,
            3.0,
            0.5,
            False,
            None,
            Listen("::1", 8080),
            7,
            5.0,
            6.0,
        ),
        config="/etc/moorage/config.yaml",
        debug_listen=Listen("::1", 10271),
        slow_decision=0.25,
    )


def test_an_empty_variable_is_not_set():
    assert Settings.from_env({"MOORAGE_LEASE_NAME": " "}) == Settings()


@pytest.mark.parametrize(
    ("variable", "text", "what"),
    [
        ("MOORAGE_LEADER_ELECT", "perhaps", "true or false"),
        ("MOORAGE_MAX_BINDS", "many", "whole number"),
        ("MOORAGE_MAX_BINDS", "0", "at least 1"),
        ("MOORAGE_LEASE_DURATION", "soon", "seconds"),
        ("MOORAGE_LEASE_DURATION", "-1", "between"),
        ("MOORAGE_LEASE_DURATION", "5", "longer"),
        ("MOORAGE_SLOW_DECISION", "never", "seconds"),
        ("MOORAGE_DEBUG_LISTEN", "0.0.0.0:1", "loopback"),
        ("MOORAGE_DEBUG_LISTEN", ":1", "loopback"),
        ("MOORAGE_DEBUG_LISTEN", "example.com:1", "loopback"),
        ("MOORAGE_DEBUG_LISTEN", "10.0.0.1:1", "loopback"),
        ("MOORAGE_METRICS_LISTEN", "8080", "HOST:PORT"),
        ("MOORAGE_METRICS_LISTEN", "x:99999", "HOST:PORT"),
        ("MOORAGE_SCHEDULER_NAME", "a a", "twice"),
        ("MOORAGE_SCHEDULER_NAME", ",", "at least one"),
    ],
)
def test_what_cannot_be_used_is_named(variable, text, what):
    with pytest.raises(SettingsError, match=what):
        Settings.from_env({variable: text})


def test_the_command_line_goes_on_top():
    base = Settings(lease_name="env", max_binds=5)
    assert base.changed(lease_name="line", max_binds=None).lease_name == "line"
    assert base.changed(lease_name=None).max_binds == 5


@pytest.mark.parametrize("text", ["127.0.0.1:80", "[::1]:80", "localhost:0"])
def test_addresses_are_written_as_they_are_read(text):
    assert str(Listen.parse(text)) == text


def test_an_address_without_a_host_is_every_interface():
    assert Listen.parse(":8080") == Listen("0.0.0.0", 8080)  # noqa: S104


def test_tokens_travel_in_the_clear_on_loopback_only():
    for host in ("127.0.0.1", "localhost", "::1"):
        Settings(explain_listen=Listen(host, 1))
    for host in ("10.0.0.1", "127.example.com", ""):
        with pytest.raises(SettingsError, match="explain-tls-cert"):
            Settings(explain_listen=Listen(host, 1))
    with pytest.raises(SettingsError, match="together"):
        Settings(explain_tls_cert="c")
    settings = Settings(explain_listen=Listen("10.0.0.1", 1), explain_tls_cert="c", explain_tls_key="k")
    assert settings.explain_listen is not None
    assert not settings.explain_listen.loopback
    assert Settings().explain_listen is None


@pytest.mark.parametrize("text", ["127.0.0.1:1", "127.8.9.1:1", "[::1]:1", "localhost:1", "off"])
def test_addresses_of_this_machine_are_fine_for_debugging(text):
    assert Settings.from_env({"MOORAGE_DEBUG_LISTEN": text}).debug_listen == Listen.parse(text)
