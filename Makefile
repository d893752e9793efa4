# Two commands on a fresh machine: `make demo` shows what belljar does, `make test` proves it.
# Everything lives in .venv; all it takes is Python 3.11+ with its venv module.

PYTHON ?= python3
# Test processes at a time.
JOBS ?= 2
# What needs no sandbox of its own: the kernel, the shell, the utilities and the fences, in one process.
FAST := tests/abi tests/bin tests/contract tests/fences tests/kernel tests/regex tests/shell tests/spec

# An application that belljar plugs into. Its requirements contradict those of newer frameworks: it is kept apart, without them.
DEEPAGENTS_CODE := deepagents-code==0.1.57 tomli-w==1.2.0 python-dotenv==1.2.2

BIN := .venv/bin
INSTALLED := .venv/.belljar-installed

.PHONY: help demo test lint check docs web wheel versions reliability durability native server tiers test-microvm soak elsewhere test-browser packages prepared repinned toolchain fuse fuzz format clean
.DEFAULT_GOAL := help

help:
	@echo 'make demo    run the main job end to end and show what happened'
	@echo 'make test    run every test'
	@echo 'make lint    format, lint, types, import layers, host contact'
	@echo 'make check   format, lint, types, import layers, host contact, fast tests'
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

demo: demo/demo.py $(INSTALLED)
	$(BIN)/python demo/demo.py

test: prepared
	$(BIN)/python -m pytest -n $(JOBS)

lint: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python tools/check_host.py

check: lint prepared
	$(BIN)/python -m pytest -n $(JOBS) -m 'not slow' $(FAST)

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
	$(BIN)/belljar prepare microvm || $(MAKE) repinned
	$(BIN)/belljar prepare toolchain
	$(BIN)/python -m tests.browser.page

# Debian's mirrors keep the newest versions only. When those that are pinned have gone, today's take their place.
repinned:
	$(BIN)/python tools/pin_microvm.py
	$(BIN)/belljar prepare microvm

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
$(INSTALLED): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	$(BIN)/python -m belljar.engines.owner.js_build_host >/dev/null
	$(BIN)/python -m belljar.engines.owner.quickjs_package_host
	rm -rf .venv/deepagents-code
	$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --target .venv/deepagents-code $(DEEPAGENTS_CODE)
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo 'belljar needs Python 3.11 or newer; choose one with: make PYTHON=/path/to/python3' >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo 'Python has no venv module here. Install it with: apt-get install python3-venv' >&2; exit 1; }
	$(PYTHON) -m venv .venv
