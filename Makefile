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

.PHONY: help demo test check docs wheel versions reliability durability native tiers soak elsewhere prepared fuse fuzz format clean
.DEFAULT_GOAL := help

help:
	@echo 'make demo    run the main job end to end and show what happened'
	@echo 'make test    run every test'
	@echo 'make check   format, lint, types, import layers, host contact, fast tests'
	@echo 'make docs    build the documentation site in build/site; broken links are errors'
	@echo 'make wheel   build a wheel for this platform, with the JavaScript addon and the agent, in dist/'
	@echo 'make versions  a quick set of tests on each other Python that is installed'
	@echo 'make reliability  the whole battery of load, soak, faults and environments (half an hour)'
	@echo 'make durability  300 kills, power cuts and faults at every call, of every kind of store (ten minutes)'
	@echo 'make native  the native tier: all tests, a real Debian system among them (fetches 150 MB)'
	@echo 'make tiers   the battery of the public API on every tier, whole'
	@echo 'make soak    fifty sandboxes used and attacked for twenty minutes'
	@echo 'make elsewhere  types as on macOS and Windows; a stand-in for both (minutes)'
	@echo 'make fuse    random operations on FUSE mounts beside tmpfs (ten minutes)'
	@echo 'make fuzz    attack every protocol side for an hour (SECONDS=3600)'
	@echo 'make format  rewrite the code in house style'
	@echo 'make clean   remove caches and builds (.venv stays)'

demo: demo/demo.py $(INSTALLED)
	$(BIN)/python demo/demo.py

test: prepared
	$(BIN)/python -m pytest -n $(JOBS)

check: prepared
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python tools/check_host.py
	$(BIN)/python -m pytest -n $(JOBS) -m 'not slow' $(FAST)

docs: $(INSTALLED)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet --site-dir build/site

wheel: $(INSTALLED)
	addon=$$($(BIN)/python -m belljar.engines.owner.js_build_host build/wheel) && \
	agent=$$($(BIN)/python -m belljar.native.agent_build_host build/wheel) && \
	BELLJAR_WHEEL_ADDON=$$PWD/$$addon BELLJAR_WHEEL_AGENT=$$PWD/$$agent $(BIN)/python -m pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation -w dist .

# Each other supported Python that is installed, in an environment of its own.
versions: prepared
	$(BIN)/python tools/versions.py

reliability: prepared
	BELLJAR_WHOLE=1 $(BIN)/python -m pytest -o faulthandler_timeout=1800 -n $(JOBS) tests/reliability

durability: prepared
	BELLJAR_WHOLE=1 $(BIN)/python -m pytest -o faulthandler_timeout=1800 -n $(JOBS) tests/store tests/state/test_durability.py

native: prepared
	BELLJAR_WHOLE=1 $(BIN)/python -m pytest -o faulthandler_timeout=1800 -n $(JOBS) tests/native

fuse: prepared
	BELLJAR_WHOLE=1 $(BIN)/python -m pytest -o faulthandler_timeout=1800 tests/fuse

tiers: prepared
	BELLJAR_WHOLE=1 $(BIN)/python -m pytest -n $(JOBS) tests/tiers tests/integrations

soak: prepared
	BELLJAR_WHOLE=1 BELLJAR_SOAK_SECONDS=600 $(BIN)/python -m pytest -o faulthandler_timeout=1800 -s tests/reliability/test_soak.py

elsewhere: $(INSTALLED)
	$(BIN)/mypy --config-file tools/mypy_elsewhere.ini --platform darwin --cache-dir .mypy_cache/darwin
	$(BIN)/mypy --config-file tools/mypy_elsewhere.ini --platform win32 --cache-dir .mypy_cache/win32
	$(BIN)/python -m pytest tests/worker/test_elsewhere.py

# What is built once per user: no test then waits for a compiler that has to share the processor with the others.
prepared: $(INSTALLED)
	$(BIN)/belljar prepare
	$(BIN)/belljar prepare native

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
