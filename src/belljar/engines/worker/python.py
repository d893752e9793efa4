"""python3 - guest Python: CPython in a process of its own, whose system calls are made here, by this process"""

from __future__ import annotations

from contextlib import closing, suppress
from typing import Any, Final

from belljar.abi.errno import ENOENT
from belljar.abi.errors import SysError
from belljar.abi.flags import O_RDONLY
from belljar.abi.paths import fsencode
from belljar.abi.signals import Signal
from belljar.bin import _venv, pip
from belljar.bin.pip import places
from belljar.engines.wire.calls import DATA_MAX
from belljar.engines.worker.calls.server import CallServer
from belljar.engines.worker.python_data import uses_data
from belljar.engines.worker.wasi_root import reserve_root
from belljar.kernel.engines import EngineLink, EngineProgram, EngineUnavailable
from belljar.kernel.process import IGNORE, Process

_LOOK: Final = 64 << 10
"""Bytes of a script that are searched."""


SESSION: Final = "--belljar-session"
"""The first argument of an interpreter that its owner drives; the second is what its code begins with."""


PREFIX: Final = "--belljar-prefix"
"""Used instead of SESSION if copies are to be made."""


def main(process: Process) -> int:
    if "/" in process.argv[0]:
        process.executable = process.absolute(process.argv[0])  # of a script that names it in its first line, too
    match process.argv[1:]:
        case ["-m", "pip", *rest]:
            process.argv = ["pip", *rest]
            return pip.main(process)
        case ["-m", "venv", *rest]:
            return _venv.run(process, rest)
        case ["-m", "ensurepip", *_]:
            process.print("Requirement already satisfied: pip")
            return 0
    session = process.argv[1:2] in ([SESSION], [PREFIX])
    prefix = process.argv[1:2] == [PREFIX]
    text = " ".join(process.argv[2:]).encode() if session else _text(process)
    if session:
        process.argv = process.argv[:1]
    replays = process.kernel.machine.replays
    kind = "python-replay" if replays else "python-data" if uses_data(text) else "python"
    limits = process.budget.limits
    options = {"memory_bytes": limits.memory_bytes, "cpu_seconds": limits.cpu_seconds, "copied": True}
    if session:
        # Its limits are those of each run; memory is what the sandbox may use.
        memory = process.kernel.limits.memory_bytes
        options = {"memory_bytes": memory, "session": True, "forkable" if prefix else "copied": True}
    try:
        link = process.kernel.engines.open(kind, options)
    except EngineUnavailable as error:
        process.warn(error.reason)
        return 127
    return run(process, link, session=session)


def resume(process: Process, original: EngineProgram) -> int:
    """Be a copy of another process's interpreter, which waits for its owner."""
    options = {"memory_bytes": process.kernel.limits.memory_bytes, "session": True}
    try:
        link = process.kernel.engines.fork(original.link, options)
    except EngineUnavailable as error:
        process.warn(error.reason)
        return 126
    return run(process, link, session=True)


def run(process: Process, link: EngineLink, *, session: bool) -> int:
    """Serve an engine process until its end."""
    with closing(link):
        reserve_root(process)
        server = CallServer(process, link)
        if process.handlers.get(Signal.INT) is not IGNORE:
            process.catch(Signal.INT, server.report)
        process.catch(Signal.PIPE, lambda _: None)
        executable = fsencode(process.executable).decode("latin-1")  # a path need not be text, what is told does
        server.start({"executable": executable, "session": session, **_surroundings(process)})
        if session:
            process.engine = EngineProgram(link, server.limit)
            left = process.budget.limits.cpu_seconds - process.budget.cpu
            server.limit(max(left, 0.0), process.budget.limits.memory_bytes)
        server.serve()


def _surroundings(process: Process) -> dict[str, Any]:
    """Answers to the interpreter's first questions: its directory's stat, and whether site-packages exists."""
    found: dict[str, Any] = {"site": _exists(process, places.site_of(places.PREFIX))}
    with suppress(SysError):
        directory = process.fs.getcwd()
        if directory != "/":  # where it begins anyway
            mount, node = process.fs.cwd
            found["directory"] = list(mount.server.stat(node))
    return found


def _exists(process: Process, path: str) -> bool:
    try:
        process.fs.stat(path)
    except SysError as error:
        return error.errno != ENOENT
    return True


def _text(process: Process) -> bytes:
    """Return the beginning of the program's source, as far as it is known without running anything."""
    words = iter(process.argv[1:])
    for word in words:
        if word in ("-W", "-X"):
            next(words, None)
        elif word == "-c" or (word.startswith("-") and not word.startswith("--") and word.endswith("c")):
            return next(words, "").encode("utf-8", "surrogateescape")
        elif word.startswith("-"):
            if "m" in word or word == "-":
                return b""
        else:
            return _head(process, word)
    return b""


def _head(process: Process, path: str) -> bytes:
    try:
        file = process.fs.open(path, O_RDONLY).retain()
    except SysError:
        return b""
    try:
        if not file.handle.seekable or file.place.node.is_dir:
            return b""
        return file.pread(min(_LOOK, DATA_MAX), 0)
    except SysError:
        return b""
    finally:
        file.release()
