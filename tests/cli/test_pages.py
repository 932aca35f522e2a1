"""`-o html` of explain, simulate and what-if."""

import os
import shutil
import subprocess

import pytest
import yaml
from click.testing import CliRunner

from moorage.cli import main
from tests.kit.builders import make_node, make_pod
from tests.kit.html import Page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

CLUSTER = [
    make_node("a", labels={"x": "y"}),
    make_node("b", unschedulable=True),
    make_node("c", allocatable={"cpu": "1"}),
    make_pod("low", node="c", cpu="1", priority=-1),
    make_pod("p", cpu="1"),
    make_pod("big", cpu="9"),
]
COMMANDS = {
    "explain": ["explain", "p", "--cluster", "{cluster}"],
    "explain-pending": ["explain", "big", "--cluster", "{cluster}"],
    "explain-bound": ["explain", "low", "--cluster", "{cluster}"],
    "what-if": ["what-if", "-f", "{pod}", "--replicas", "9", "--capacity", "--cluster", "{cluster}"],
    "simulate": ["simulate", "{cluster}"],
}
WORDS = {
    "explain": ("Nodes that would take it (1)", "Insufficient cpu", "node(s) were unschedulable"),
    "explain-pending": ("What would help", "5 more cpu on node a", "The filters, one after the other"),
    "explain-bound": ("is on node c", "a ◀ chosen"),
    "what-if": ("Would be evicted", "default/low", "Capacity", "The cluster, before and after"),
    "simulate": ("1 of 2 pending pods placed.", "default/big"),
}


@pytest.fixture
def html(tmp_path):
    def call(name):
        (tmp_path / "cluster.yaml").write_text(yaml.safe_dump_all(CLUSTER))
        (tmp_path / "pod.yaml").write_text(yaml.safe_dump(make_pod("new", cpu="1", priority=1)))
        files = {"cluster": tmp_path / "cluster.yaml", "pod": tmp_path / "pod.yaml"}
        words = [word.format(**files) for word in COMMANDS[name]]
        result = CliRunner().invoke(main, [*words, "-o", "html"])
        assert result.exit_code in (0, 3), result.output
        return result.stdout

    return call


@pytest.mark.parametrize("name", COMMANDS)
def test_pages_are_whole_and_say_what_there_is_to_say(html, name):
    found = Page(html(name))
    assert "script" not in found.tags
    for words in WORDS[name]:
        assert words in found.text


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_browser_has_nothing_to_complain_about(html, name, tmp_path):
    """Also of what it would have to fetch, run or ignore."""
    assert CHROMIUM is not None
    path = tmp_path / "page.html"
    path.write_text(html(name))
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    options = [
        "--headless",
        "--disable-gpu",
        "--enable-logging=stderr",
        f"--user-data-dir={tmp_path / 'profile'}",
    ]
    argv = [CHROMIUM, *options, *sandbox, "--dump-dom", path.as_uri()]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=90, check=True)
    assert "CONSOLE" not in done.stderr, done.stderr
    assert "<h1>" in done.stdout
