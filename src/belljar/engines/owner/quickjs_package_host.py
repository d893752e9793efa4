"""Finds what QuickJS needs: its WebAssembly, which the package quickjs-rs brings, and Node's library, out of Node.

The library is JavaScript that Node carries inside its binary. It is taken out once, by that binary, and kept beside the
compiled engines, sealed as they are.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

from belljar.abi.install import install_hint
from belljar.engines.artefact_host import ArtefactError, Source, directory, prepare, store
from belljar.engines.artefact_host import find as find_artefact
from belljar.engines.compiler_host import Progress
from belljar.engines.errors import EngineUnavailable
from belljar.engines.owner.js_build_host import node
from belljar.engines.owner.progress_host import progress
from belljar.engines.owner.quickjs_open_table import open_table

INSTALL: Final = install_hint("js")
GUEST_SHA256: Final = "647ab11ae29cc6d39a6d17d3aa1e7a6a0b5fb9c44b4864475a18bc644f926050"
TRANSFORM_SHA256: Final = "c4710d5258585122a70f0b3ee3bc19d085742e6f94f48aa0b8057630ebaca745"
"""Digests of quickjs-rs 0.2.6's modules, checked when they are compiled."""
OPENED_SHA256: Final = "a46c2dd5ceb986d33d660a0fbc03f75fd4dcbb221e105f1d5a7c692f636f1e6b"
"""Digest of the engine with its table opened."""
_GUEST, _TRANSFORM = "_guest.wasm", "_transform.wasm"
_PRINT_LIBRARY: Final = (
    "process.stdout.write(JSON.stringify({ ...process.binding('natives'), 'belljar/version': process.version }))"
)
_LIBRARY_SECONDS: Final = 120.0


def sources() -> tuple[Source, Source]:
    """The engine and the transformer of TypeScript. Raises EngineUnavailable."""
    try:
        found = distribution("quickjs-rs")
        distribution("wasmtime")
        distribution("ada-url")
    except PackageNotFoundError as error:
        raise EngineUnavailable(f"QuickJS needs the package {error.name}; {INSTALL}") from None
    place = Path(str(found.locate_file("quickjs_rs")))
    for name in (_GUEST, _TRANSFORM):
        if not (place / name).is_file():
            raise EngineUnavailable(f"the package quickjs-rs has no {name}; {INSTALL} --force-reinstall")
    return Source(_opened(place / _GUEST), OPENED_SHA256, "QuickJS"), Source(
        place / _TRANSFORM, TRANSFORM_SHA256, "TypeScript"
    )


def _opened(original: Path) -> Path:
    """The engine with its table opened, made if it is not there. Raises EngineUnavailable."""
    made = directory() / f"{OPENED_SHA256[:32]}.wasm"
    if not made.exists():
        module = original.read_bytes()
        if hashlib.sha256(module).hexdigest() != GUEST_SHA256:
            raise EngineUnavailable(f"{original} is not that of quickjs-rs 0.2.6; {INSTALL} --force-reinstall")
        store(made, open_table(module))
    return made


def library_place() -> Path:
    """Return the cache path of Node's extracted library: one file for each binary. Raises EngineUnavailable."""
    binary = node()
    known = f"2\n{binary}\n{binary.stat().st_size}\n{binary.stat().st_mtime_ns}"
    return directory() / f"{hashlib.sha256(known.encode()).hexdigest()[:32]}.library"


def library() -> Path:
    """Node's library, as JSON, to be opened by `open_checked`. Raises EngineUnavailable."""
    place = library_place()
    if not place.exists():
        # Without its compilers: where those may not work, it is still good for this.
        command = [str(node()), "--jitless", "--no-warnings", "--no-deprecation", "-e", _PRINT_LIBRARY]
        try:
            said = subprocess.run(  # noqa: S603 - the package's own binary
                command, check=True, capture_output=True, timeout=_LIBRARY_SECONDS, env={}, cwd="/"
            ).stdout
        except (OSError, subprocess.SubprocessError) as error:
            raise EngineUnavailable(f"QuickJS runs Node's library, and {node()} does not give it: {error}") from error
        store(place, said)
    return place


def command() -> list[str]:
    """Prepare all that the template needs; return its command. Raises EngineUnavailable."""
    try:
        with progress(10.0) as show:
            made = prepare_all(show)
    except ArtefactError as error:
        raise EngineUnavailable(str(error)) from error
    return [sys.executable, "-I", "-m", "belljar.engines.quickjs.template_host", *map(str, made)]


def prepare_all(show: Progress | None = None) -> tuple[Path, Path, Path]:
    """The compiled engine and transformer, and Node's library; what is not there is made, which takes a few seconds.

    Raises EngineUnavailable, ArtefactError.
    """
    engine, transformer = sources()
    return prepare(engine, "optimised", show), prepare(transformer, "optimised", show), library()


def is_ready() -> bool:
    """Whether nothing is left to be made. Raises EngineUnavailable, ArtefactError."""
    found = [find_artefact(source) for source in sources()]
    return all(one is not None and one[1] == "optimised" for one in found) and library_place().exists()


if __name__ == "__main__":
    prepare_all()
