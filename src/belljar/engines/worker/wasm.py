"""Runs a WebAssembly file: an engine process has its native code and makes its calls, this process does them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Final

from belljar.abi.errno import ENOENT
from belljar.abi.errors import SysError
from belljar.abi.flags import O_RDONLY
from belljar.abi.signals import Signal
from belljar.engines.wire.wasm import PROGRAM_MAX
from belljar.engines.worker.calls.server import CallServer
from belljar.kernel.engines import EngineLink, EngineUnavailable, NotCompilable
from belljar.kernel.process import Process

CANNOT_EXECUTE: Final = 126
_PIECE: Final = 256 << 10
_TRIES: Final = 3


def main(process: Process, path: str) -> int:
    try:
        link = _open(process, path)
    except NotCompilable as error:
        _charge(process, error.seconds)
        if error.spent:
            process.budget.exceed("cpu_seconds")
        return _refuse(process, error.reason)
    except EngineUnavailable as error:
        process.warn(error.reason)
        return 127
    except SysError as error:
        return _refuse(process, error.reason)
    with closing(link):
        server = CallServer(process, link)
        process.catch(Signal.PIPE, lambda _: None)
        server.start({})
        server.serve()


def _charge(process: Process, seconds: float) -> None:
    process.cpu += seconds
    process.kernel.cpu += seconds
    process.budget.charge_time(seconds)


def _refuse(process: Process, reason: str) -> int:
    process.warn(f"cannot execute: {reason}")
    return CANNOT_EXECUTE


def _open(process: Process, path: str) -> EngineLink:
    """A process that has the file's native code; the owner compiles what it has not seen. SysError."""
    import hashlib  # which a sandbox in a hurry does without

    engines, limits = process.kernel.engines, process.budget.limits
    for _ in range(_TRIES):
        digest = hashlib.sha256()
        for piece in _pieces(process, path):
            digest.update(piece)
        options = {"memory_bytes": limits.memory_bytes, "cpu_seconds": limits.cpu_seconds}
        try:
            return engines.open("wasm", {**options, "program": digest.hexdigest()})
        except EngineUnavailable as error:
            if error.errno != ENOENT:
                raise
        options["cpu_seconds"] = max(0.0, limits.cpu_seconds - process.budget.cpu)
        _charge(process, engines.compile(_pieces(process, path), options))
    raise NotCompilable("it changes while it is read")


def _pieces(process: Process, path: str) -> Iterator[bytes]:
    file = process.fs.open(path, O_RDONLY).retain()
    try:
        offset = 0
        while piece := file.pread(_PIECE, offset):
            process.budget.charge()
            offset += len(piece)
            if offset > PROGRAM_MAX:
                raise NotCompilable(f"larger than {PROGRAM_MAX >> 20} MB")
            yield piece
    finally:
        file.release()
