"""The Dockerfile, as far as it can be judged without a registry."""

import asyncio
import contextlib
import fnmatch
import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml
from aiohttp import web

from moorage.runtime.settings import Settings

ROOT = Path(__file__).resolve().parent.parent
DOCKERFILE = (ROOT / "Dockerfile").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
Instruction = tuple[str, str]


def instructions() -> list[Instruction]:
    """Each instruction and its arguments, with lines that go on joined."""
    text = re.sub(r"^\s*#.*\n", "", DOCKERFILE, flags=re.MULTILINE).replace("\\\n", " ")
    return [
        (word, rest.strip()) for word, _, rest in (line.partition(" ") for line in text.splitlines()) if word
    ]


def stages() -> list[list[Instruction]]:
    """The instructions of each stage, FROM first."""
    made: list[list[Instruction]] = []
    for instruction in instructions():
        if instruction[0] == "FROM":
            made.append([])
        if made:
            made[-1].append(instruction)
    return made


def of(stage: list[Instruction], word: str) -> list[str]:
    return [rest for name, rest in stage if name == word]


def copied() -> list[str]:
    """What is copied from the build context."""
    arguments = [
        rest.split() for word, rest in instructions() if word == "COPY" and not rest.startswith("--from")
    ]
    return [source for sources in arguments for source in sources[:-1]]


def ignored(path: Path) -> bool:
    """By .dockerignore: the last pattern that matches a path or a folder above it decides."""
    verdict = False
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        pattern = line.removeprefix("!").removeprefix("**/")
        if not line or line.startswith("#"):
            continue
        names = [str(path), *(str(folder) for folder in path.parents if folder.name)]
        if "**/" in line:
            names = list(path.parts)
        if any(fnmatch.fnmatch(name, pattern) for name in names):
            verdict = not line.startswith("!")
    return verdict


def context(target: Path) -> None:
    """Copy what is under version control, or would be, and what .dockerignore lets through."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if not ignored(Path(name)) and (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target / name)


@pytest.mark.parametrize("source", copied())
def test_what_is_copied_is_there(source: str) -> None:
    assert (ROOT / source).exists()
    assert not ignored(Path(source))


def test_nothing_else_is_sent_to_the_builder(tmp_path: Path) -> None:
    context(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} <= set(copied())
    assert list(tmp_path.rglob("__pycache__")) == []


def test_the_context_is_enough_for_the_wheel(tmp_path: Path) -> None:
    context(tmp_path)
    assert any("hatchling build --target wheel" in rest for rest in of(stages()[0], "RUN"))
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", "dist"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert [path.name for path in (tmp_path / "dist").iterdir()] == [
        f"moorage-{PROJECT['version']}-py3-none-any.whl"
    ]


def test_it_runs_as_nobody_in_particular_and_needs_no_shell() -> None:
    final = stages()[-1]
    assert of(final, "RUN") == []
    (user,) = of(final, "USER")
    assert all(int(number) > 0 for number in user.split(":"))
    values = yaml.safe_load((ROOT / "charts" / "moorage" / "values.yaml").read_text())
    context = values["securityContext"]
    assert user == f"{context['runAsUser']}:{context['runAsGroup']}"
    for word in ("ENTRYPOINT", "CMD"):
        (command,) = of(final, word)
        assert isinstance(json.loads(command), list), f"{word} would need a shell"


def test_a_user_who_is_in_no_list_has_a_home_and_a_name() -> None:
    """Without a home kubernetes_asyncio cannot be imported; without a name Kopf does not start."""
    (environment,) = of(stages()[-1], "ENV")
    assert {"HOME=/tmp", "USER=moorage"} <= set(environment.split())


def test_the_entry_point_is_a_command_of_the_package_where_it_was_installed() -> None:
    build, final = stages()
    (entry,) = json.loads(of(final, "ENTRYPOINT")[0])
    assert Path(entry).name in PROJECT["scripts"]
    environment = str(Path(entry).parents[1])
    assert f"--from=build {environment} {environment}" in of(final, "COPY")
    assert f"python -m venv {environment} " in of(build, "RUN")[0]
    assert json.loads(of(final, "CMD")[0]) == ["run"]


def test_both_stages_have_the_same_python_and_it_is_a_supported_one() -> None:
    """The environment is copied, and its interpreter is a link."""
    images = {rest.split(" AS ")[0] for word, rest in instructions() if word == "FROM"}
    assert images == {"python:${PYTHON}-slim"}
    (version,) = [rest.removeprefix("PYTHON=") for word, rest in instructions() if word == "ARG"]
    assert f"Programming Language :: Python :: {version}" in PROJECT["classifiers"]


def test_only_what_the_locks_name_is_installed() -> None:
    installs = [
        part for rest in of(stages()[0], "RUN") for part in rest.split("&&") if " pip install " in part
    ]
    assert len(installs) == 3
    for install in installs:
        assert "--require-hashes" in install or "--no-index" in install


@contextlib.asynccontextmanager
async def answering(status: int) -> AsyncIterator[int]:
    """A server that answers /healthz with this status; gives its port."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status)

    application = web.Application()
    application.add_routes([web.get("/healthz", answer)])
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield runner.addresses[0][1]
    await runner.cleanup()


@pytest.mark.parametrize("status", [200, 503])
async def test_the_health_check_tells_health_from_trouble(status: int) -> None:

    (check,) = of(stages()[-1], "HEALTHCHECK")
    _, option, code = json.loads(check.partition("CMD ")[2])
    default = Settings().metrics_listen
    assert str(default) in code, "it asks where `moorage run` listens without options"
    assert option == "-c"
    async with answering(status) as port:
        command = code.replace(str(default), f"127.0.0.1:{port}")
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", command, stderr=asyncio.subprocess.DEVNULL
        )
        assert (await process.wait() == 0) == (status == 200)
