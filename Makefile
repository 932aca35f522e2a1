# Everything a developer or CI runs. `make help` lists it; each target's line begins with two hashes.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet
UV     := 0.13.9
ARGS   ?=
N      ?= 2000

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help env demo check lint test test-unit test-integration parity mutants bench bench-compare sandbox assets oracle crds lock fmt clean

## help: this list
help:
	@echo "Moorage, a Kubernetes scheduler in Python. Targets:"
	@sed -n 's/^## \([a-z-]*\): \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{printf "%-24s %s\n", $$1, $$2}'
	@echo "Needs Python 3.11 or newer; another one than python3: make PYTHON=python3.12 …"

## env: the environment in .venv, with everything for development
env: $(VENV)/.dev

## demo: place the pods of examples/demo, no cluster needed
demo: $(VENV)/.package
	@$(BIN)/moorage simulate examples/demo || [ $$? -eq 3 ]   # 3: a pod fits nowhere, which the demo shows

## check: formatting, lint, types, layers and the fast tests, in under 30 s
check: lint test-unit

## lint: ruff, mypy and import-linter
lint: $(VENV)/.dev
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy --no-error-summary
	$(BIN)/lint-imports --no-logo

## test: everything CI runs; the first time it builds a control plane and an oracle, which takes minutes
test: lint assets oracle
	$(BIN)/python -m pytest $(ARGS)

## test-unit: the fast tests; ARGS="-k name" picks some
test-unit: $(VENV)/.dev
	$(BIN)/python -m pytest -q -m "not integration and not slow" $(ARGS)

## test-integration: the tests that need the control plane
test-integration: $(VENV)/.dev assets oracle
	$(BIN)/python -m pytest -m integration $(ARGS)

.PHONY: test-versions chart sbom
NEWEST_ONLY := --ignore=tests/integration/test_controlplane.py   # the control plane's own tests
## test-versions: the integration tests with the API servers of older versions; VERSIONS="1.34" picks one
test-versions: $(VENV)/.dev assets
	@for version in $(or $(VERSIONS),$$($(BIN)/python -m tests.controlplane.build_version)); do \
	  folder=$$($(BIN)/python -m tests.controlplane.build_version $$version | tee /dev/stderr | tail -1) && \
	  KUBEBUILDER_ASSETS=$$folder $(BIN)/python -m pytest -m "integration and not parity" $(NEWEST_ONLY) $(ARGS) || exit 1; \
	done

## parity: compare with kube-scheduler on N generated cases; ARGS="--seed 7" repeats a run
parity: $(VENV)/.dev oracle
	@$(BIN)/python -m tests.parity $(N) $(ARGS)

## mutants: break the scheduler in many small ways, one at a time; a test must notice each (ARGS="NodePorts" picks)
mutants: $(VENV)/.dev
	@$(BIN)/python -m tests.mutants $(ARGS)

## bench: the cost of a decision, and the whole path on a real control plane
bench: $(VENV)/.dev assets
	$(BIN)/python -m tests.bench $(ARGS)

## bench-compare: beside kube-scheduler, all workloads; hours. ARGS="--workloads basic,affinity --rounds 1" is less
bench-compare: $(VENV)/.dev assets
	@$(BIN)/python -m tests.bench compare $(ARGS)

## sandbox: a control plane with a few fake nodes to try kubectl on; Ctrl-C ends it
sandbox: $(VENV)/.dev assets
	@$(BIN)/python -m tests.controlplane.sandbox $(ARGS)

## assets: build etcd, kube-apiserver, kube-scheduler (or use KUBEBUILDER_ASSETS) and Helm (or MOORAGE_HELM) once
assets: $(VENV)/.python
	@$(BIN)/python -m tests.controlplane.build
	@$(BIN)/python -m tests.controlplane.build_helm

## oracle: build the program that says what kube-scheduler decides once (or use MOORAGE_ORACLE)
oracle: $(VENV)/.python
	@$(BIN)/python -m tests.parity.build

## crds: write crds/*.yaml anew from scripts/crds.source.yaml
crds: $(VENV)/.package
	$(BIN)/python scripts/crds.py

## lock: pin the newest allowed versions of all dependencies anew
lock: $(VENV)/.uv
	scripts/lock.sh $(VENV)/.uv/bin/uv

## chart: write what the Helm chart has from elsewhere: permissions, definitions of policies, the table of values
chart: $(VENV)/.package
	@$(BIN)/python scripts/chart.py

## sbom: print a bill of materials (CycloneDX) of what requirements.lock installs
sbom: $(VENV)/.package
	@$(BIN)/python scripts/sbom.py

## fmt: format, and mend what ruff can mend
fmt: $(VENV)/.dev
	$(BIN)/ruff format --quiet .
	$(BIN)/ruff check --fix --quiet .

## clean: remove the environment and all caches (not what is in ~/.cache: control plane and oracle)
clean:
	rm -rf $(VENV) .cache .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist
	find operator tests -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps below make a warm run start at once: nothing is installed unless a lock file is newer.
$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Moorage needs Python 3.11 or newer, and '$(PYTHON)' is $$($(PYTHON) --version 2>/dev/null || echo missing)." >&2; \
	  echo "Name another one: make PYTHON=/path/to/python3.11 …" >&2; exit 1; }
	@echo "Making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/.runtime: requirements.lock requirements-build.lock | $(VENV)/.python
	@echo "Installing what Moorage needs to run"
	@$(PIP) install --require-hashes -r requirements.lock
	@$(PIP) install --require-hashes -r requirements-build.lock
	@touch $@

$(VENV)/.package: pyproject.toml $(VENV)/.runtime
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: requirements-dev.lock $(VENV)/.package
	@echo "Installing the tools for development"
	@$(PIP) install --require-hashes -r requirements-dev.lock
	@touch $@

$(VENV)/.uv: | $(VENV)/.python
	@$(PYTHON) -m venv $@ && $@/bin/python -m pip --disable-pip-version-check --quiet install uv==$(UV)
