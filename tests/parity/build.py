"""Builds the oracle from source, once per machine: `make oracle`.

The program lives in the user's cache beside the control plane's, in a folder named by a hash of all that goes
into it, so it is built again only when its source, a dependency or the compiler changes.  With
`MOORAGE_ORACLE` set to a program, that one is used and nothing is built.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import sys
from pathlib import Path

from tests.controlplane.build import (
    KUBERNETES_VERSION,
    ROOT,
    STAMP,
    BuildError,
    cache_home,
    find_go,
    go_build,
    go_version,
    link,
    locked,
    say,
)

SOURCES = Path(__file__).resolve().parent / "oracle"
PLACE = ROOT / ".cache" / "oracle"
PROGRAM = "oracle"
LDFLAGS = "-s -w"  # no symbols: half the size, and a panic still names function and line


def find() -> Path:
    """The finished program; BuildError if there is none or it is out of date."""
    if named := os.environ.get("MOORAGE_ORACLE"):
        program = Path(named)
        if not program.is_file():
            raise BuildError(f"MOORAGE_ORACLE={named} is no file")
        return program
    try:
        stamp = (PLACE / STAMP).read_text()
    except OSError:
        raise BuildError("the oracle is not built: run `make oracle`") from None
    if stamp != _sources_hash():
        raise BuildError("the oracle was built from other sources: run `make oracle`")
    return PLACE.resolve() / PROGRAM


def build() -> Path:
    """Build the program if it is missing or out of date, and link `.cache/oracle` to its folder."""
    with contextlib.suppress(BuildError):
        return find()
    if "MOORAGE_ORACLE" in os.environ:
        return find()  # which says what is wrong with it
    go = find_go()
    version = go_version(go)
    key = hashlib.sha256(f"{_sources_hash()} {version} {platform.system()} {platform.machine()}".encode())
    folder = cache_home() / f"oracle-{key.hexdigest()[:16]}"
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / "lock"):
        if not (folder / STAMP).exists():
            what = f"the oracle (kube-scheduler {KUBERNETES_VERSION} as a library)"
            say(f"Building {what} with {version}: minutes the first time")
            go_build(go, ".", folder / PROGRAM, folder=SOURCES, ldflags=LDFLAGS)
            (folder / STAMP).write_text(_sources_hash())
    link(PLACE, folder)
    return folder / PROGRAM


def _sources_hash() -> str:
    sources = sorted((*SOURCES.glob("*.go"), *SOURCES.glob("go.*")))
    inputs = [LDFLAGS, *(path.read_text() for path in sources)]
    return hashlib.sha256("\0".join(inputs).encode()).hexdigest()


def main() -> int:
    """The command: build, and print where the program is."""
    try:
        program = build()
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    say(f"Oracle: {program}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
