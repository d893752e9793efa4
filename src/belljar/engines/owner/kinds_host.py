"""The kinds of engine processes there are, and what starts the template of each."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

from belljar.engines.owner import js_choice_host, python_start_host, tools_host
from belljar.engines.owner.python_package_host import check_wasmtime
from belljar.engines.wire.tools import TOOLS, Tool


def _wasm() -> list[str]:
    check_wasmtime()
    return [sys.executable, "-I", "-m", "belljar.engines.wasm.template_host"]


def _tool(tool: Tool) -> list[str]:
    check_wasmtime()
    artefact, library, archive = tools_host.files_of(tool)
    return [sys.executable, "-I", "-m", tool.template, tool.kind, str(artefact), library, archive]


def commands() -> dict[str, Callable[[], list[str]]]:
    """Map each kind to a function that returns its template's command, or raises EngineUnavailable."""
    return {
        "python": lambda: python_start_host.command("python"),
        "python-data": lambda: python_start_host.command("python-data"),
        "python-replay": lambda: python_start_host.command("python-replay"),
        "js": lambda: js_choice_host.command("run"),
        "node": lambda: js_choice_host.command("program"),
        "wasm": _wasm,
        **{kind: partial(_tool, tool) for kind, tool in TOOLS.items()},
    }
