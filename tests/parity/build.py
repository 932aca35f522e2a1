"""Builds the oracle from source, once per machine: `python -m tests.parity.build`.

The program lives in the user's cache beside the control plane's, in a folder named by a hash of all that goes
into it, so it is built again only when its source, a dependency or the compiler changes.  With
`MOORAGE_ORACLE` set to a program, that one is used and nothing is built.
"""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

from tests.controlplane import build as controlplane
from tests.controlplane.build import BuildError

SOURCES = Path(__file__).resolve().parent / "oracle"
LDFLAGS = "-s -w"  # no symbols: half the size, and a panic still names function and line


def find() -> Path:
    """The finished program; BuildError if there is none or it is out of date."""
    if named := os.environ.get("MOORAGE_ORACLE"):
        program = Path(named)
        if not program.is_file():
            raise BuildError(f"MOORAGE_ORACLE={named} is no file")
        return program
    program = _target()
    if not program.exists():
        raise BuildError("the oracle is not built: run `python -m tests.parity.build`")
    return program


def build() -> Path:
    """Build the program if it is missing or out of date."""
    if "MOORAGE_ORACLE" in os.environ:
        return find()
    program = _target()
    program.parent.mkdir(parents=True, exist_ok=True)
    with controlplane._locked(program.parent / "lock"):
        if not program.exists():
            _compile(program)
    return program


def _target() -> Path:
    parts = [
        platform.system(),
        platform.machine(),
        controlplane._go_version(controlplane._find_go()),
        LDFLAGS,
    ]
    sources = sorted((*SOURCES.glob("*.go"), *SOURCES.glob("go.*")))
    parts += [path.read_text() for path in sources]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    return controlplane._cache_home() / f"oracle-{key[:16]}" / "oracle"


def _compile(program: Path) -> None:
    """Compile, counting packages: Go can report no other progress (`-v` names each package when it is done)."""
    began = time.monotonic()
    controlplane._say(f"Building the oracle (kube-scheduler {controlplane.KUBERNETES_VERSION} as a library)")
    partial = program.with_name(f"{program.name}.{os.getpid()}.part")
    command = [controlplane._find_go(), "build", "-v", "-trimpath", "-buildvcs=false", "-ldflags", LDFLAGS]
    command += ["-o", str(partial), "."]
    environment = controlplane._go_env()
    with subprocess.Popen(
        command, cwd=SOURCES, env=environment, stderr=subprocess.PIPE, text=True
    ) as compiler:
        progress = controlplane._Progress(program.name, began)
        tail: list[str] = []
        assert compiler.stderr is not None
        for line in compiler.stderr:
            tail = [*tail[-30:], line]
            progress.packages += 1
        progress.end()
    if compiler.returncode:
        partial.unlink(missing_ok=True)
        raise BuildError(f"go build of {SOURCES.name} failed:\n{''.join(tail)}")
    partial.replace(program)
    controlplane._say(f"  oracle: {program.stat().st_size >> 20} MiB in {controlplane._elapsed(began)}")


def main() -> int:
    """The command: build, and print where the program is."""
    try:
        program = build()
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    controlplane._say(f"Oracle: {program}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
