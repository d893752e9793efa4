"""cc - compile C and C++ to programs that run here

Usage: cc [-c|-S|-E] [-o FILE] [-O2] [-g] [-IDIR] [-DNAME] [-LDIR] FILE... [-lLIBRARY]

clang and its linker, as programs of the sandbox. What they make is a WebAssembly program, with the execute bit:
./a.out runs it. GCC's usual options are taken.
"""

from __future__ import annotations

from contextlib import suppress

from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode
from belljar.engines.wire.tools import LLVM
from belljar.engines.worker.cc_options import COMPILE, LINK, NotPossible, explain, parse_command_line, parse_steps
from belljar.engines.worker.tools import run_step, run_tool
from belljar.kernel.process import Process

_STANDARD = {"c89": ["-std=c89"], "c99": ["-std=c99"], "cpp": ["-E"]}


def main(process: Process, name: str) -> int:
    """Be the compiler, called by one of its names."""
    driver = "clang++" if name in ("c++", "g++", "clang++") else "clang"
    words = _STANDARD.get(name, []) + _expanded(process)
    if words[:1] == ["-cc1"]:
        return _be(process, ["llvm", driver, *words])
    try:
        line = parse_command_line(words)
    except NotPossible as error:
        process.error(f"{name}: error: {error}\n")
        return 1
    options = [*COMPILE, *(["-fno-exceptions"] if driver == "clang++" else [])]
    if line.direct:
        return _be(process, ["llvm", driver, *options, *line.words])
    links = LINK if line.links else ()
    status, said = run_step(process, ["llvm", driver, "-###", *options, *line.words, *links], captures=True)
    steps = parse_steps(said)
    if status or not steps:
        process.error(_complaints(said))
        return status
    return _run_steps(process, name, driver, steps)


def _be(process: Process, argv: list[str]) -> int:
    process.argv = argv
    return run_tool(process, LLVM.kind)


def _expanded(process: Process) -> list[str]:
    """The arguments, with those in @files."""
    words: list[str] = []
    for word in process.argv[1:]:
        if word.startswith("@") and len(word) > 1:
            with suppress(SysError):
                words += fsdecode(process.read_file(word[1:])).split()
                continue
        words.append(word)
    return words


def _run_steps(process: Process, name: str, driver: str, steps: list[list[str]]) -> int:
    """Run what was planned, until something fails. Temporary files get names that no other process has."""
    temporary: dict[str, str] = {}
    try:
        for step in steps:
            out = step[step.index("-o") + 1] if "-o" in step else ""
            if "-cc1" in step:
                if out.startswith("/tmp/"):
                    temporary[out] = f"/tmp/cc-{process.pid}-{len(temporary)}.o"
                words = step[step.index("-cc1") :]
                status, _ = run_step(process, ["llvm", driver, *(temporary.get(w, w) for w in words)], captures=False)
            else:
                words = step[step.index("wasm-ld") + 1 :] if "wasm-ld" in step else step[1:]
                status, said = run_step(
                    process, ["llvm", "wasm-ld", *(temporary.get(w, w) for w in words)], captures=True
                )
                process.error(said.replace("wasm-ld: ", "ld: "))
                for reason in explain(said):
                    process.error(f"{name}: note: {reason}\n")
                if not status and out:
                    with suppress(SysError):  # /dev/null
                        process.fs.chmod(out, 0o777 & ~process.fs.umask)
            if status:
                return status if status < 128 else 1
    finally:
        for path in temporary.values():
            with suppress(SysError):
                process.fs.unlink(path)
    return 0


def _complaints(said: str) -> str:
    """What clang said of its command line, without what it says of itself."""
    preamble = ("clang version", "Target:", "Thread model:", "InstalledDir:", "Build config:")
    return "".join(f"{line}\n" for line in said.splitlines() if not line.startswith((*preamble, ' "', " (in-process)")))
