"""The command line of the extender: what is printed, what is refused, and a trial of one that runs."""

import socket
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from moorage.cli.extender import extender
from tests.kit.extender import FakeExtender, keep, rate

URL = "http://127.0.0.1:10270/scheduler"


def run(*args, **env):
    return CliRunner(env={"KUBECONFIG": "/nowhere", **env}).invoke(extender, args)


def test_the_configuration_is_printed():
    result = run("--print-config", "--url", URL, "--way", "kubeadm")
    assert result.exit_code == 0
    (one,) = yaml.safe_load(result.output)["extenders"]
    assert (one["ignorable"], "bindVerb" in one) == (True, False)
    result = run("--print-config", "--url", URL, MOORAGE_ENABLE_BIND="true")
    (one,) = yaml.safe_load(result.output)["extenders"]
    assert (one["ignorable"], one["bindVerb"]) == (False, "bind")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--print-config",), "--url: is missing"),
        (("--check",), "--url: is missing"),
        (("--url", URL), "--listen is where to serve"),
        (("--print-config", "--check", "--url", URL), "do not go together"),
        (("--print-config", "--url", "http://m.k.svc/s", "--way", "k3s"), "is the name of a Service"),
        (("--check", "--url", URL, "rules.py"), "rules.py: plugins are for the server"),
        (("rules.txt",), "rules.txt: must be a Python file"),
        (("--listen", "nowhere"), "must be HOST:PORT"),
        (("--tls-cert", "x"), "tls-key: is missing"),
        (("--check", "--url", "https://127.0.0.1:9/s", "--ca", "/nowhere"), "cannot be used"),
    ],
)
def test_bad_options(args, words):
    result = run(*args)
    assert result.exit_code == 2
    assert words in " ".join(result.output.split())


def test_a_plugin_that_cannot_be_used(tmp_path):
    file = tmp_path / "rules.py"
    file.write_text(
        "import moorage\n\n@moorage.filter(colour='red')\ndef rule(pod, nodes):\n    return True\n"
    )
    result = run(str(file))
    assert result.exit_code == 2
    assert f"{file}:3" in result.output


def test_a_bad_variable():
    result = run(MOORAGE_DRAIN="soon")
    assert result.exit_code == 2
    assert "MOORAGE_DRAIN: must be a number of seconds" in result.output


def test_a_trial_says_what_is_wrong_by_its_exit_status():
    verbs = {"preempt": lambda body: {}, "bind": lambda body: {"Error": "no"}}

    def passing(body):
        names = body["NodeNames"] or [node["metadata"]["name"] for node in body["Nodes"]["items"]]
        return keep(*names)(body)

    with FakeExtender(filter=passing, prioritize=rate(), **verbs) as fake:
        fake_url = fake.url
        result = run("--check", "--url", fake_url)
    assert result.exit_code == 1  # a fake serves no /readyz
    assert "ok     filter, names" in result.output
    assert "wrong  ready" in result.output
    assert " ms" in result.output
    result = run("--check", "--url", fake_url, "--timeout", "1")
    assert result.output.count("wrong ") == 7


def test_it_does_not_start_where_anybody_could_bind():
    result = run("--listen", "0.0.0.0:0", "--enable-bind")
    assert result.exit_code == 1
    assert "enable-bind: anybody who reaches 0.0.0.0:0 could place pods" in result.output


def test_it_does_not_start_without_a_cluster():
    result = run("--kubeconfig", str(Path("/nowhere")))
    assert result.exit_code == 1
    assert "moorage extender: " in result.output
    assert "Traceback" not in result.output
    assert socket.gethostname() not in result.output
