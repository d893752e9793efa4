"""The kinds of engine processes there are, and what starts the template of each."""

from __future__ import annotations

import sys
from collections.abc import Callable

from belljar.engines.owner import js_choice_host, python_start_host
from belljar.engines.owner.python_package_host import check_wasmtime


def _wasm() -> list[str]:
    check_wasmtime()
    return [sys.executable, "-I", "-m", "belljar.engines.wasm.template_host"]


def commands() -> dict[str, Callable[[], list[str]]]:
    """Map each kind to a function that returns its template's command, or raises EngineUnavailable."""
    return {
        "python": lambda: python_start_host.command("python"),
        "python-data": lambda: python_start_host.command("python-data"),
        "python-replay": lambda: python_start_host.command("python-replay"),
        "js": lambda: js_choice_host.command("run"),
        "node": lambda: js_choice_host.command("program"),
        "wasm": _wasm,
    }
