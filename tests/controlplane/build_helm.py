"""Builds Helm from source, once per machine: `python -m tests.controlplane.build_helm`.

It has a go.mod of its own, since its dependencies are not the control plane's. With `MOORAGE_HELM` set to a
program, that one is used and nothing is built. Standard library only, as `build`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import sys
from pathlib import Path

from tests.controlplane.build import HERE, ROOT, STAMP, STRIPPED, BuildError, cached, go_build, link, say

SOURCES = HERE / "helm"
PLACE = ROOT / ".cache" / "helm"
PROGRAM = "helm"
_PACKAGE = "helm.sh/helm/v4"


def version() -> str:
    """The version that is built, such as v4.1.0."""
    found = re.search(
        rf"^\s*(?:require )?{re.escape(_PACKAGE)} (v\S+)", (SOURCES / "go.mod").read_text(), re.MULTILINE
    )
    assert found is not None
    return found[1]


def find() -> Path:
    """The finished program; BuildError if there is none or it is out of date."""
    if named := os.environ.get("MOORAGE_HELM"):
        program = Path(named)
        if not program.is_file():
            raise BuildError(f"MOORAGE_HELM={named} is no file")
        return program
    try:
        stamp = (PLACE / STAMP).read_text()
    except OSError:
        raise BuildError("Helm is not built: run `make assets`") from None
    if stamp.split()[0] != _sources_hash():
        raise BuildError("Helm was built from other sources: run `make assets`")
    return PLACE.resolve() / PROGRAM


def build() -> Path:
    """Build it if it is missing or out of date, and link `.cache/helm` to its folder."""
    with contextlib.suppress(BuildError):
        return find()
    if "MOORAGE_HELM" in os.environ:
        return find()  # which says what is wrong with it

    def make(go: str, folder: Path) -> None:
        go_build(go, f"{_PACKAGE}/cmd/helm", folder / PROGRAM, folder=SOURCES, ldflags=_ldflags())

    folder = cached("helm-", _sources_hash(), f"Helm {version()}", make)
    link(PLACE, folder)
    return folder / PROGRAM


def _ldflags() -> str:
    return f"{STRIPPED} -X {_PACKAGE}/internal/version.version={version()}"


def _sources_hash() -> str:
    inputs = [(SOURCES / name).read_text() for name in ("go.mod", "go.sum")]
    return hashlib.sha256("\0".join([*inputs, _ldflags()]).encode()).hexdigest()


def main() -> int:
    """The command: build, and print where the program is."""
    try:
        program = build()
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    say(f"Helm {version()}: {program}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
