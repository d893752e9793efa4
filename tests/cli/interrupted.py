"""`belljar prepare` of small things that gets a signal at one exact moment: a program for test_interrupt.py.

Usage: python interrupted.py WHERE NUMBER SIGNAL LOG, with WHERE `worker` or `compiler`

Each change to files under $ROOT, each lock and each start of a process is a moment. At the one of this NUMBER in the
process WHERE, the command gets the signal, and the process stands still. With NUMBER 0 moments are written to LOG.
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
import signal
import sys
import tarfile
import time
from inspect import signature
from pathlib import Path
from typing import Any

CHANGES = {
    "os.mkdir",
    "os.rename",
    "os.remove",
    "os.rmdir",
    "os.link",
    "os.truncate",
    "fcntl.flock",
    "subprocess.Popen",
}
WASM = b"\0asm\1\0\0\0"
"""The smallest module."""


def interrupt_at(number: int, name: str, command: int, log: str) -> None:
    """Watch this process. `command`: the process that gets the signal."""
    root = os.environ["ROOT"]
    seen = 0
    busy = False

    def hear(event: str, args: tuple[Any, ...]) -> None:
        nonlocal seen, busy
        if busy:
            return
        if event == "open":
            path, _, flags = args
            writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            if not writes or not str(path).startswith(root):
                return
        elif event not in CHANGES:
            return
        busy = True
        try:
            seen += 1
            if number == 0:
                with open(log, "a") as file:
                    file.write(f"{seen} {event}\n")
            elif seen == number:
                os.kill(command, getattr(signal, name))
                while True:
                    time.sleep(60)  # until KeyboardInterrupt in the worker, SIGKILL in the compiler
        finally:
            busy = False

    sys.addaudithook(hear)


def compiler() -> int:
    """The process that compiles WebAssembly."""
    where, number, name, log, *words = sys.argv[2:]
    if where == "compiler":
        interrupt_at(int(number), name, int(os.environ["COMMAND"]), log)
    from belljar.engines.compile_host import main

    return main(words)


def command() -> int:
    where, number, name, log = sys.argv[1:5]
    from belljar.cli import __main__, engines_host, guarded_host, prepare_host
    from belljar.cli.engines_host import Engine
    from belljar.engines import artefact_host
    from belljar.engines.artefact_host import Source, prepare
    from belljar.engines.compiler_host import Progress
    from belljar.engines.owner import tools_host
    from belljar.engines.wire.tools import TOOLS, Tool

    digest = hashlib.sha256(WASM).hexdigest()
    module = Path(os.environ["ROOT"], "module.wasm")
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as packed:
        for inside in ("program", "library"):
            info = tarfile.TarInfo(inside)
            info.size = len(WASM)
            packed.addfile(info, io.BytesIO(WASM))
    integrity = base64.b64encode(hashlib.sha512(archive.getvalue()).digest()).decode()
    first = next(iter(TOOLS.values()))
    fields = {name: getattr(first, name) for name in signature(Tool).parameters}
    small = {"program": "program", "program_sha256": digest, "library": "library", "library_sha256": digest}
    tool = Tool(**{**fields, **small, "integrity": integrity})

    def start(run: Any, arguments: Any) -> int:
        os.environ["COMMAND"] = str(os.getppid())
        if where == "worker":
            interrupt_at(int(number), name, os.getppid(), log)
        return int(run(arguments))

    real = prepare_host._run
    prepare_host._run = lambda arguments: start(real, arguments)
    guarded_host.GRACE_SECONDS = 1.0  # type: ignore[misc]
    artefact_host._COMPILER = (sys.executable, __file__, "compile", *sys.argv[1:5])  # type: ignore[misc, assignment]
    engines_host.look = lambda: [Engine(each, "1", False, "") for each in ("python", "js", "quickjs")]

    def prepare_python(progress: Progress) -> None:
        prepare(Source(module, digest, "it"), "quick", progress)

    def prepare_quickjs(progress: Progress) -> None:
        tools_host.prepare_tool(tool, progress, lambda url: archive.getvalue())

    engines_host.prepare_python = prepare_python
    engines_host.prepare_quickjs = prepare_quickjs
    sys.argv = ["belljar", "prepare"]
    return __main__.main()


if __name__ == "__main__":
    sys.exit(compiler() if sys.argv[1] == "compile" else command())
