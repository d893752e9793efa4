"""Compiles WebAssembly to an artefact.

`python -I -m belljar.engines.compile_host FILE SHA256 quick|optimised OUT [CHANGE]...`

`background` instead of a quality: the optimised one into the directory OUT, at the lowest priority, unless another
process is at it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import wasmtime

from belljar.engines.artefact_host import Change, Source, artefact_name, store
from belljar.engines.wasi.linker_host import configuration
from belljar.lockdown.seal_host import die_with_parent


def compile_module(wasm: bytes, *, optimised: bool) -> bytes:
    engine = wasmtime.Engine(configuration(optimised=optimised, parallel=True))
    return bytes(wasmtime.Module(engine, wasm).serialize())


def changed(wasm: bytes, changes: Sequence[Change]) -> bytes:
    """Apply changes. Raises ValueError where other bytes are found than expected."""
    result = bytearray(wasm)
    for change in changes:
        end = change.offset + len(change.old)
        if len(change.new) != len(change.old) or result[change.offset : end] != change.old:
            raise ValueError(f"the change {change} does not fit")
        result[change.offset : end] = change.new
    return bytes(result)


def main(arguments: list[str]) -> int:
    file, digest, quality, out, *words = arguments
    if quality != "background":
        die_with_parent(os.getppid())
    changes = tuple(map(Change.parse, words))
    wasm = Path(file).read_bytes()
    if hashlib.sha256(wasm).hexdigest() != digest:
        sys.stderr.write(f"{file} is not the file that was expected (its SHA-256 differs)\n")
        return 1
    wasm = changed(wasm, changes)
    if quality == "background":
        return _in_background(Source(Path(file), digest, "", changes), wasm, Path(out))
    store(Path(out), compile_module(wasm, optimised=quality == "optimised"))
    return 0


def _in_background(source: Source, wasm: bytes, directory: Path) -> int:
    path = directory / f"{artefact_name(source, 'optimised')}.cwasm"
    os.nice(19)
    with open(path.with_suffix(".lock"), "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return 0
        if not path.exists():
            store(path, compile_module(wasm, optimised=True))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
