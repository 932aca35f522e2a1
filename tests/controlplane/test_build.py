"""Building from source: what the builders of the control plane and of the oracle share."""

from pathlib import Path

import pytest

from tests.controlplane import build, build_helm, build_version
from tests.controlplane.build import BuildError


def compiler(tmp_path: Path, body: str) -> str:
    path = tmp_path / "go"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def test_a_program_appears_when_it_is_finished(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "module"
    source.mkdir()
    # The arguments say where the program goes; where it is started says which module is meant.
    go = compiler(tmp_path, 'while [ "$1" != -o ]; do shift; done; pwd > "$2"; echo one >&2; echo two >&2')
    build.go_build(go, "./cmd", tmp_path / "program", folder=source, ldflags="-s")
    assert Path((tmp_path / "program").read_text().strip()) == source
    assert "program: 0 MiB in 0 s" in capsys.readouterr().out


def test_a_build_that_fails_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    go = compiler(
        tmp_path, 'while [ "$1" != -o ]; do shift; done; echo half > "$2"; echo "x.go:1: no" >&2; exit 1'
    )
    with pytest.raises(BuildError, match=r"go build \./cmd in .* failed:\nx.go:1: no"):
        build.go_build(go, "./cmd", tmp_path / "program", folder=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["go"]


def test_the_cache_is_the_user_s_or_else_the_clone_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert build.cache_home() == tmp_path / "moorage" / "assets"
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert build.cache_home() == build.ROOT / ".cache" / "built"


def test_a_link_replaces_whatever_was_there(tmp_path: Path) -> None:
    place, old, new = tmp_path / "cache" / "assets", tmp_path / "old", tmp_path / "new"
    for folder in (old, new):
        folder.mkdir()
    place.mkdir(parents=True)
    for folder in (old, new):
        build.link(place, folder)
        assert place.resolve() == folder
    assert [path.name for path in place.parent.iterdir()] == ["assets"]


@pytest.mark.parametrize(
    ("text", "number"), [("go1.26.8", (1, 26)), ("go2.0rc1", (2, 0)), ("unknown", (0, 0))]
)
def test_versions(text: str, number: tuple[int, int]) -> None:
    assert build._number(text) == number


def test_what_is_named_is_taken_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    with pytest.raises(BuildError, match="lacks etcd, kube-apiserver"):
        build.build()
    for name in ("etcd", "kube-apiserver"):
        (tmp_path / name).write_text("")
    assert build.build() == tmp_path


def test_older_versions_are_known_by_their_minor() -> None:
    minors = build_version.known()
    assert minors == sorted(minors, key=lambda minor: int(minor.split(".")[1]))
    newest = int(build.KUBERNETES_VERSION.split(".")[1])
    assert [int(minor.split(".")[1]) for minor in minors] == [newest - 3, newest - 2, newest - 1]
    for minor in minors:
        version = build_version.version(minor)
        assert version.startswith(f"v{minor}.")
        text = (build_version.VERSIONS / minor / "go.mod").read_text()
        replaced = [line for line in text.splitlines() if "=>" in line]
        assert len(replaced) > 20
        assert all(line.endswith(f" v0.{version.removeprefix('v1.')}") for line in replaced)
    with pytest.raises(BuildError, match=r"no versions/1\.2; known are 1\.34"):
        build_version.version("1.2")


def test_a_program_of_an_older_version_says_so() -> None:
    assert "gitVersion=v1.34.4 " in build.ldflags("v1.34.4")
    assert build.ldflags("v1.34.4").endswith("gitMinor=34")


def test_helm_is_what_its_module_asks_for_or_what_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert build_helm.version().startswith("v4.")
    monkeypatch.setenv("MOORAGE_HELM", str(tmp_path / "helm"))
    with pytest.raises(BuildError, match="is no file"):
        build_helm.build()
    (tmp_path / "helm").write_text("")
    assert build_helm.build() == tmp_path / "helm"
