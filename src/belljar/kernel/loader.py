"""Loading of programs: PATH search, our own programs' magic, `#!` lines."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from belljar.abi.base import DEFAULT_PATH
from belljar.abi.errno import E2BIG, EACCES, ELOOP, ENOENT, ENOEXEC, ENOTDIR
from belljar.abi.errors import SysError
from belljar.abi.flags import ARG_MAX, O_RDONLY, S_IFMT, S_IFREG, X_OK
from belljar.abi.native import SYSTEM
from belljar.abi.paths import basename, fsdecode
from belljar.kernel.vfs.namespace import Place
from belljar.kernel.vfs.resolve import resolve

if TYPE_CHECKING:
    from belljar.kernel.process import Process

Program = Callable[["Process"], int]
"""A program: reads its process's argv, returns its exit code."""

MAGIC: Final = b"\x7fBELLJAR "
"""Magic at the start of a built-in program's file; its name and a newline follow. Copies of the file work as well."""
_ELF: Final = b"\x7fELF"
_HEAD: Final = 256
_SCRIPT_DEPTH: Final = 5


def program_file(name: str) -> bytes:
    """The contents of a built-in program's file."""
    return MAGIC + name.encode() + b"\n"


def search_path(process: Process, name: str, path: str | None) -> str:
    """The file a command name means. A name with a slash is itself. ENOENT; EACCES if only non-executables exist."""
    if "/" in name:
        return name
    fs, cache = process.fs, process.kernel.lookup_cache
    path = DEFAULT_PATH if path is None else path
    found: str | None = cache.get(fs, (path, name))
    if found is not None:
        return found
    failure = ENOENT
    visited: list[Place] = []
    is_absolute = True
    for directory in path.split(":"):
        candidate = f"{directory}/{name}" if directory else f"./{name}"
        is_absolute = is_absolute and candidate[0] == "/"
        try:
            place = resolve(fs, candidate, visited=visited)
        except SysError:
            continue
        if place.node.mode & S_IFMT != S_IFREG:
            continue
        if fs.credentials.may(place.node, X_OK):
            if is_absolute:
                cache.put(fs, (path, name), candidate, [*visited, place])
            return candidate
        failure = EACCES
    raise SysError(failure, name)


def load(process: Process, path: str, argv: list[str]) -> tuple[Program, list[str]]:
    """The program in a file, and the argv it gets (a `#!` line puts its interpreter in front). A native program's file
    means our own program of that name.

    ENOENT, EACCES (not executable, not a file), ENOEXEC (no format we know), ELOOP (`#!` too deep), E2BIG.
    """
    if sum(map(len, argv)) > ARG_MAX:
        raise SysError(E2BIG, path)
    program: Program | None = process.kernel.lookup_cache.get(process.fs, path)
    if program is not None:
        return program, argv
    for _ in range(_SCRIPT_DEPTH + 1):
        visited: list[Place] = []
        head = _head(process, path, visited)
        if head.startswith(MAGIC):
            name = fsdecode(head[len(MAGIC) :].partition(b"\n")[0])
            program = _find(process, name)
            if program is None:
                raise SysError(ENOEXEC, path)
            if path[0] == "/":
                process.kernel.lookup_cache.put(process.fs, path, program, visited)
            return program, argv
        loader = process.kernel.binary_loader(head)
        if loader is not None:
            return loader(path), argv
        if head.startswith(_ELF) and (program := _load_elf(process, path)) is not None:
            return program, argv
        if not head.startswith(b"#!"):
            raise SysError(ENOEXEC, path)
        interpreter, argument = _shebang(head, path)
        argv = [interpreter, *argument, path, *argv[1:]]
        path = interpreter
    raise SysError(ELOOP, path)


def run_program(process: Process, argv: list[str], who: str) -> int:
    """Be the program that a command line means; or tell, in the name of `who`, why not, as a shell would."""
    try:
        path = search_path(process, argv[0], process.env.get("PATH"))
        program, full_argv = load(process, path, argv)
    except SysError as error:
        reason = "command not found" if "/" not in argv[0] and error.errno == ENOENT else error.reason
        process.error(f"{who}: {argv[0]}: {reason}\n")
        return 127 if error.errno in (ENOENT, ENOTDIR) else 126
    process.prepare_exec(path, full_argv, process.env)
    return program(process)


def _load_elf(process: Process, path: str) -> Program | None:
    """A stand-in for a program of an image's system directories; else the program itself, if that may run natively."""
    native = None if _is_contained(process) else process.kernel.elf_loader
    built_inside = process.absolute(path).split("/")[1] not in SYSTEM
    if native is not None and built_inside:
        return native(path)
    return _stand_in(process, path) or (None if native is None else native(path))


def _stand_in(process: Process, path: str) -> Program | None:
    """The program of ours that has the name of a native one, as in an image of another system; None if there is none.

    A version at the end of the name does not count.
    """
    name = basename(path)
    return _find(process, name) or _find(process, name.rstrip(".0123456789"))


def _find(process: Process, name: str) -> Program | None:
    """The program of a name, as far as this process may run it."""
    if _is_contained(process) and name in process.kernel.outer_programs:
        return None
    return process.kernel.programs(name)


def _is_contained(process: Process) -> bool:
    return process.space.parent is not None


def _head(process: Process, path: str, visited: list[Place]) -> bytes:
    fs = process.fs
    place = resolve(fs, path, visited=visited)
    visited.append(place)
    if place.node.mode & S_IFMT != S_IFREG:
        raise SysError(EACCES, path)
    if not fs.credentials.may(place.node, X_OK):
        raise SysError(EACCES, path)
    handle = place.mount.server.open(place.node, O_RDONLY)
    try:
        return handle.read(0, _HEAD)
    finally:
        handle.close()


def _shebang(head: bytes, path: str) -> tuple[str, list[str]]:
    """The interpreter and its one optional argument, as Linux splits the line."""
    line, newline, _ = head[2:].partition(b"\n")
    words = re.split(rb"[ \t]+", line.strip(b" \t"), maxsplit=1)
    if not words[0] or (not newline and len(head) == _HEAD and len(words) == 1):
        raise SysError(ENOEXEC, path)
    interpreter, *argument = map(fsdecode, words)
    return interpreter, argument
