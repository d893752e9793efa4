"""The kinds of engine processes there are, and what starts the template of each."""

from __future__ import annotations

import sys
from collections.abc import Callable

from belljar.engines.python import start_host
from belljar.engines.python.package_host import check_wasmtime
from belljar.engines.quickjs import choice_host


def _wasm() -> list[str]:
    check_wasmtime()
    return [sys.executable, "-I", "-m", "belljar.engines.wasm.template_host"]


def commands() -> dict[str, Callable[[], list[str]]]:
    """By kind: gives the command that starts its template, or raises EngineUnavailable."""
    return {
        "python": lambda: start_host.command("python"),
        "python-data": lambda: start_host.command("python-data"),
        "js": lambda: choice_host.command("run"),
        "node": lambda: choice_host.command("program"),
        "wasm": _wasm,
    }
