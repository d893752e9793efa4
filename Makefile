# Two commands on a fresh machine: `make demo` shows what belljar does, `make test` proves it.
# Everything lives in .venv; all it takes is Python 3.11+ with its venv module.

PYTHON ?= python3
# Test processes at a time.
JOBS ?= 2
# A seed: run the tests in another order.
SHUFFLE ?=
# What needs no engine and no sandbox of real programs: the kernel, the shell, the utilities and the fences.
FAST := tests/abi tests/bin tests/contract tests/fences tests/kernel tests/libc tests/regex tests/shell tests/spec
# Those of them that run Python or JavaScript in sandboxes.
NEED_ENGINES := tests/bin/npm tests/bin/pip tests/fences/test_cpython.py
# Packages that need nothing beyond dev-core to have their types checked.
CORE := $(addprefix src/belljar/,abi libc regex kernel shell bin)

# An application that belljar plugs into. Its requirements contradict those of newer frameworks: it is kept apart, without them.
DEEPAGENTS_CODE := deepagents-code==0.1.57 tomli-w==1.2.0 python-dotenv==1.2.2

BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Three environments in one directory, each with more than the one before: for the demo, for `make check`, for all tests.
FOR_DEMO := .venv/.for-demo
FOR_CHECK := .venv/.for-check
INSTALLED := .venv/.for-tests
RUN := $(BIN)/python -m pytest -n $(JOBS) --dist worksteal --rooms $(if $(SHUFFLE),--shuffle $(SHUFFLE))

.PHONY: help demo test test-all test-changed lint check docs web wheel versions reliability durability native server tiers test-microvm soak elsewhere test-browser packages prepared toolchain fuse fuzz format clean
.DEFAULT_GOAL := help

help:
	@echo 'make demo    run the main job end to end and show what happened'
	@echo 'make test    run the tests: everything that can fail for a reason of its own (16 minutes from nothing, then 13)'
	@echo 'make test-all  run everything, whole (hours)'
	@echo 'make test-changed  the batteries of the rooms that changed since SINCE=COMMIT (default: .ci/landed)'
	@echo 'make lint    format, lint, types, import layers, host contact'
	@echo 'make check   before each commit: format, lint, types of the core, import layers, fast tests (3 minutes)'
	@echo 'make docs    build the documentation site in build/site; broken links are errors'
	@echo 'make web     build the page of the console of belljar serve'
	@echo 'make wheel   build a wheel for this platform, with the JavaScript addon, the agent and the console, in dist/'
	@echo 'make versions  a quick set of tests on each other Python that is installed'
	@echo 'make reliability  the whole battery of load, soak, faults and environments (half an hour)'
	@echo 'make durability  300 kills, power cuts and faults at every call, of every kind of store (ten minutes)'
	@echo 'make server  the server: all tests, 100 kills under load among them, and schemathesis (half an hour)'
	@echo 'make native  the native tier: all tests, a real Debian system among them (fetches 400 MB), the agent for aarch64'
	@echo 'make tiers   the battery of the public API on every tier, whole'
	@echo 'make test-microvm  the microvm tier: all tests, and the battery of the public API on it (hours, emulated)'
	@echo 'make packages  packages and registries: all tests, 5,000 random catalogs among them'
	@echo 'make test-browser  sandboxes in a page and in Node: the whole battery, and all of tests/spec (half an hour)'
	@echo 'make soak    fifty sandboxes used and attacked for twenty minutes'
	@echo 'make elsewhere  types as on macOS and Windows; a stand-in for both (minutes)'
	@echo 'make toolchain  projects of others built in sandboxes, attacks on the compiler (fifteen minutes)'
	@echo 'make fuse    random operations on FUSE mounts beside tmpfs (ten minutes)'
	@echo 'make fuzz    attack every protocol side for an hour (SECONDS=3600)'
	@echo 'make format  rewrite the code in house style'
	@echo 'make clean   remove caches and builds (.venv stays)'

demo: $(FOR_DEMO)
	@$(BIN)/python -u demo/demo.py

test: prepared
	$(RUN) --part test

# Whole: every case of every battery, every tier, each other Python.
test-all: prepared lint docs elsewhere
	BELLJAR_WHOLE=1 $(BIN)/python tools/versions.py
	BELLJAR_WHOLE=1 $(RUN) -o faulthandler_timeout=3600

# What `make test` leaves out, for the rooms that a change can break (tests/rooms.py).
SINCE ?= $(shell cat .ci/landed)
test-changed: prepared
	@rooms=$$($(BIN)/python -m tests.rooms --since $(SINCE)) && \
	echo "batteries of the rooms changed since $(SINCE):" $${rooms:-none} && \
	{ test -z "$$rooms" || $(RUN) --part battery $$(printf 'tests/%s ' $$rooms) || test $$? -eq 5; }

lint: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python tools/check_host.py

check: $(FOR_CHECK)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy $(CORE)
	$(BIN)/lint-imports --no-logo
	$(BIN)/python tools/check_host.py
	$(RUN) --part test -m 'not slow' $(FAST) $(addprefix --ignore=,$(NEED_ENGINES))

docs: $(INSTALLED)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet --site-dir build/site

# Nothing if it was made of the same sources.
web: $(INSTALLED)
	$(BIN)/python tools/build_web.py

wheel: $(INSTALLED) web
	addon=$$($(BIN)/python -m belljar.engines.owner.js_build_host build/wheel) && \
	agent=$$($(BIN)/python -m belljar.native.agent_build_host build/wheel) && \
	BELLJAR_WHEEL_ADDON=$$PWD/$$addon BELLJAR_WHEEL_AGENT=$$PWD/$$agent $(BIN)/python -m pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation -w dist .

# Each other supported Python that is installed, in an environment of its own.
versions: prepared
	$(BIN)/python tools/versions.py

reliability: prepared
	BELLJAR_WHOLE=1 $(BIN)/python -m pytest -o faulthandler_timeout=1800 -n $(JOBS) tests/reliability tests/engines/js/test_stress.py

durability: prepared
	BELLJAR_WHOLE=1 $(BIN)/python -m pytest -o faulthandler_timeout=1800 -n $(JOBS) tests/store tests/state/test_durability.py

native: prepared
	BELLJAR_WHOLE=1 $(BIN)/python -m pytest -o faulthandler_timeout=1800 -n $(JOBS) tests/native tests/agent

server: prepared
	BELLJAR_WHOLE=1 $(BIN)/python -m pytest -o faulthandler_timeout=1800 -n $(JOBS) tests/server

toolchain: prepared
	BELLJAR_WHOLE=1 $(BIN)/python -m pytest -o faulthandler_timeout=3600 -n $(JOBS) tests/engines/toolchain tests/escape/test_toolchain.py

fuse: prepared
	BELLJAR_WHOLE=1 $(BIN)/python -m pytest -o faulthandler_timeout=1800 tests/fuse

tiers: prepared
	BELLJAR_WHOLE=1 $(BIN)/python -m pytest -n $(JOBS) tests/tiers tests/integrations

test-microvm: prepared
	BELLJAR_WHOLE=1 $(BIN)/python -m pytest -o faulthandler_timeout=1800 -n $(JOBS) tests/vm
	BELLJAR_WHOLE=1 $(BIN)/python -m pytest -n $(JOBS) tests/tiers -k microvm

packages: prepared
	BELLJAR_WHOLE=1 $(BIN)/python -m pytest -n $(JOBS) tests/packages tests/bin/pkg tests/cli/test_packages.py tests/docs/test_packages.py

soak: prepared
	BELLJAR_WHOLE=1 BELLJAR_SOAK_SECONDS=600 $(BIN)/python -m pytest -o faulthandler_timeout=1800 -s tests/reliability/test_soak.py

test-browser: prepared
	BELLJAR_WHOLE=1 $(BIN)/python -m pytest -o faulthandler_timeout=3600 tests/browser

elsewhere: $(INSTALLED)
	$(BIN)/mypy --config-file tools/mypy_elsewhere.ini --platform darwin --cache-dir .mypy_cache/darwin
	$(BIN)/mypy --config-file tools/mypy_elsewhere.ini --platform win32 --cache-dir .mypy_cache/win32
	$(BIN)/python -m pytest tests/worker/test_elsewhere.py

# What is built once per user: no test then waits for a compiler that has to share the processor with the others.
prepared: $(INSTALLED) web
	$(BIN)/belljar prepare
	$(BIN)/belljar prepare native
	$(BIN)/python -m tests.chromium
	$(BIN)/belljar prepare microvm
	$(BIN)/belljar prepare toolchain
	$(BIN)/python -m tests.browser.page

# What breaks is written to build/fuzz.
SECONDS ?= 3600
fuzz: prepared
	$(BIN)/python -m tests.fuzz --seconds $(SECONDS)

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests tools demo benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# An existing .venv is taken over as it is; it is brought up to date whenever pyproject.toml changes.
$(FOR_DEMO): pyproject.toml | $(BIN)/python
	@echo 'installing Python, JavaScript and belljar into .venv'
	@$(PIP) --editable '.[python,js]'
	@touch $@

$(FOR_CHECK): pyproject.toml | $(BIN)/python
	@echo 'installing dev-core into .venv'
	@$(PIP) --editable '.[dev-core]'
	@touch $@

$(INSTALLED): pyproject.toml | $(BIN)/python
	@echo 'installing dev-all into .venv: every engine, framework and tool that tests use (two minutes)'
	$(PIP) --editable '.[dev-all]'
	$(BIN)/python -m belljar.engines.owner.js_build_host >/dev/null
	$(BIN)/python -m belljar.engines.owner.quickjs_package_host
	rm -rf .venv/deepagents-code
	$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --target .venv/deepagents-code $(DEEPAGENTS_CODE)
	@touch $(FOR_DEMO) $(FOR_CHECK) $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo 'belljar needs Python 3.11 or newer; choose one with: make PYTHON=/path/to/python3' >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo 'Python has no venv module here. Install it with: apt-get install python3-venv' >&2; exit 1; }
	$(PYTHON) -m venv .venv
