"""Runs prepared tools: an engine process has the program, this process makes its calls."""

from __future__ import annotations

from contextlib import closing, suppress
from typing import Final

from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode
from belljar.engines.wire.tools import LLVM
from belljar.engines.worker.calls.server import CallServer
from belljar.engines.worker.wasi_root import reserve_root
from belljar.kernel.engines import EngineUnavailable
from belljar.kernel.process import Process

DRIVERS: Final = frozenset("c++ c89 c99 cc clang clang++ cpp g++ gcc".split())
"""Names of the compiler."""
_SUBCOMMANDS: Final = {"ld": "wasm-ld"}
"""What LLVM's one program calls those that it knows by another name."""


_NO_MODES: Final = "Function not implemented"


def run_tool(process: Process, kind: str) -> int:
    """Be a tool, with the process's own argv."""
    limits = process.budget.limits
    options = {"memory_bytes": limits.memory_bytes, "cpu_seconds": limits.cpu_seconds}
    try:
        link = process.kernel.engines.open(kind, options)
    except EngineUnavailable as error:
        process.warn(error.reason)
        return 127
    with closing(link):
        reserve_root(process)
        server = CallServer(process, link)
        server.start({})
        server.serve()


def run_program(process: Process, kind: str, name: str) -> int:
    """Be one of a tool's programs."""
    if kind != LLVM.kind:
        return run_tool(process, kind)
    if name in DRIVERS:
        from belljar.engines.worker.cc import main

        return main(process, name)
    if name in ("strip", "objcopy"):
        return _rewrite(process, name)
    process.argv = ["llvm", _SUBCOMMANDS.get(name, name), *process.argv[1:]]
    return run_tool(process, kind)


def run_step(process: Process, argv: list[str], *, captures: bool) -> tuple[int, str]:
    """Run LLVM as a process of its own; its exit code and what it said on standard error, if that is captured."""

    def body(child: Process) -> int:
        child.argv = argv
        return run_tool(child, LLVM.kind)

    if not captures:
        return process.wait_for(process.fork(body, argv=argv)).shell, ""
    reader, writer = process.pipe(cloexec=True)
    kept = process.fds.get(2)
    if kept is not None:
        kept.retain()
    try:
        process.fds.put(2, process.fds[writer])
        child = process.fork(body, argv=argv)
    finally:
        if kept is not None:
            process.fds.put(2, kept)
            kept.release()
        process.close(writer)
    said = process.read_to_end(reader)
    process.close(reader)
    return process.wait_for(child).shell, fsdecode(said)


def _rewrite(process: Process, name: str) -> int:
    """strip and objcopy: they write a new file and fail to set its mode, which WASI can't; so it is set here."""
    words = [word for word in process.argv[1:] if not word.startswith("-")]
    target = words[-1] if words else ""
    if "-o" in process.argv[1:-1]:
        target = process.argv[process.argv.index("-o") + 1]
    mode = 0o777 & ~process.fs.umask
    with suppress(SysError):
        mode = process.fs.stat(words[0] if words else "").mode & 0o7777
    status, said = run_step(process, ["llvm", name, *process.argv[1:]], captures=True)
    if _NO_MODES not in said:
        process.error(said)
        return status
    with suppress(SysError):
        process.fs.chmod(target, mode)
    return 0
