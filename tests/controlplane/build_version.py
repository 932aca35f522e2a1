"""Builds the API server of another version of Kubernetes: `python -m tests.controlplane.build_version 1.34`.

Prints the folder, which then serves as `KUBEBUILDER_ASSETS`. `make test-versions` runs the integration tests
with each. Every version has a folder in `versions` with its go.mod; etcd is the one of `build`, and there is no
kube-scheduler: Moorage is compared with one version only.
"""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path

from tests.controlplane import build
from tests.controlplane.build import HERE, BuildError

VERSIONS = HERE / "versions"
_PROGRAM = "kube-apiserver"
_PACKAGE = "k8s.io/kubernetes"


def known() -> list[str]:
    """The minor versions that there are, the oldest first."""
    minors = (path.parent.name for path in VERSIONS.glob("*/go.mod"))
    return sorted(minors, key=lambda minor: [int(part) for part in minor.split(".")])


def version(minor: str) -> str:
    """The version that is built for a minor version: v1.34.4 for 1.34. BuildError for one that is not known."""
    if minor not in known():
        raise BuildError(f"there is no {VERSIONS.name}/{minor}; known are {', '.join(known())}")
    text = (VERSIONS / minor / "go.mod").read_text()
    found = re.search(rf"^\s*(?:require )?{re.escape(_PACKAGE)} (v\S+)", text, re.MULTILINE)
    assert found is not None, minor
    return found[1]


def build_version(minor: str) -> Path:
    """The folder with this version's API server, and etcd."""
    full, sources = version(minor), VERSIONS / minor
    flags = build.ldflags(full)
    inputs = [(sources / name).read_text() for name in ("go.mod", "go.sum")]
    key = hashlib.sha256("\0".join([*inputs, flags]).encode()).hexdigest()

    def make(go: str, folder: Path) -> None:
        package = f"{_PACKAGE}/cmd/{_PROGRAM}"
        build.go_build(go, package, folder / _PROGRAM, folder=sources, ldflags=flags)

    folder = build.cached(f"apiserver-{minor}-", key, f"{_PROGRAM} {full}", make)
    build.link(folder / "etcd", build.build() / "etcd")
    return folder


def main(arguments: list[str]) -> int:
    """The command: build one version, and print its folder on a line of its own, the last; or list the versions."""
    if not arguments:
        print("\n".join(known()))
        return 0
    try:
        folder = build_version(arguments[0])
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    build.say(str(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
