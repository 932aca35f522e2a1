"""The configuration file: read again when its content has changed, and never in parts."""

import logging
from typing import Any

import pytest

from moorage.configuration.file import ConfigFile
from moorage.configuration.read import ConfigError


class Meter:
    def __init__(self):
        self.told = []

    def config_read(self, *, accepted):
        self.told.append(accepted)


def named(name):
    return f"profiles: [{{schedulerName: {name}}}]\n"


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text(named("a"))
    return file


@pytest.fixture
def watched(path):
    applied = []

    async def apply(configuration):
        if "forbidden" in configuration.profiles:
            raise ConfigError([("profiles", "must be others")])
        applied.append(list(configuration.profiles))

    file: Any = ConfigFile(str(path), apply=apply, meter=Meter())
    file.load()
    file.applied = applied
    return file


async def look(file, times=2):
    for _ in range(times):
        await file.look()


async def test_a_file_that_stays_as_it_is_is_left_alone(watched, path):
    path.touch()
    await look(watched)
    assert (watched.applied, watched._meter.told) == ([], [])


async def test_new_content_is_taken_over_once_it_stands(watched, path, caplog):
    caplog.set_level(logging.INFO)
    path.write_text(named("b"))
    await watched.look()
    assert watched.applied == []
    path.write_text(named("b") + "leaderElection: {leaderElect: true}\n")
    await watched.look()
    assert watched.applied == [], "it is being written"
    await look(watched, 3)
    assert watched.applied == [["b"]]
    assert watched._meter.told == [True]
    assert "profiles b" in caplog.text
    assert "leaderElection: is ignored: use --leader-elect" in caplog.text


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("profiles: [{schedulerNme: a}]\nextendrs: []\n", ["profiles[0].schedulerNme", "extendrs: is not"]),
        ("a: [", ["not YAML"]),
        ("", ["is empty"]),
        (named("forbidden"), ["profiles: must be others"]),
        (None, ["cannot be read: No such file"]),
    ],
)
async def test_a_broken_one_leaves_the_old_in_force_and_says_so_once(watched, path, caplog, content, words):
    path.unlink() if content is None else path.write_text(content)
    await look(watched, 4)
    assert (watched.applied, watched._meter.told) == ([], [False])
    assert all(word in caplog.text for word in words)
    assert "the configuration before it stays in force" in caplog.text
    path.write_text(named("c"))
    await look(watched)
    assert (watched.applied, watched._meter.told) == ([["c"]], [False, True])


async def test_a_config_map_swaps_a_link_to_a_folder(tmp_path):
    for number in (1, 2):
        folder = tmp_path / f"v{number}"
        folder.mkdir()
        (folder / "config.yaml").write_text(named(f"name{number}"))
    (tmp_path / "..data").symlink_to("v1")
    (tmp_path / "config.yaml").symlink_to("..data/config.yaml")
    applied = []

    async def apply(configuration):
        applied.append(list(configuration.profiles))

    file = ConfigFile(str(tmp_path / "config.yaml"), apply=apply, meter=Meter())
    assert list(file.load().profiles) == ["name1"]
    (tmp_path / "..new").symlink_to("v2")
    (tmp_path / "..new").replace(tmp_path / "..data")
    await look(file)
    assert applied == [["name2"]]


def test_at_the_start_a_broken_file_is_an_error_with_a_line_for_each_problem(path, watched):
    path.write_text("parallelism: 0\nprofiles: [{schedulerNme: a}]\n")
    with pytest.raises(ConfigError) as caught:
        watched.load()
    assert str(caught.value).splitlines() == [
        f"{path}: parallelism: must be between 1 and 2147483647, not 0",
        f"{path}: profiles[0].schedulerNme: is not supported",
    ]


def test_bytes_that_are_no_text(path, watched):
    path.write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="is not UTF-8"):
        watched.load()
