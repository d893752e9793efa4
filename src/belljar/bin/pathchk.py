"""pathchk - diagnose invalid or non-portable file names

Usage: pathchk [OPTION]... NAME...

Diagnose invalid or non-portable file names.
"""

import re

from belljar.abi.dataclass import dataclass
from belljar.abi.errno import ENOENT
from belljar.abi.errors import SysError
from belljar.abi.flags import NAME_MAX, PATH_MAX
from belljar.abi.paths import byte_length
from belljar.bin._kit import UsageError, flag, utility
from belljar.bin._kit.quoting import quote, quote_if_odd, quote_name
from belljar.kernel.process import Process

_PORTABLE = re.compile(r"[A-Za-z0-9._/-]*")
_POSIX_NAME = 14
_POSIX_PATH = 256


@dataclass(frozen=True, slots=True)
class Options:
    basic: bool = flag("-p", "check for most POSIX systems")
    extra: bool = flag("-P", 'check for empty names and leading "-"')
    portability: bool = flag("--portability", "check for all POSIX systems (equivalent to -p -P)")


@utility("pathchk", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if not operands:
        raise UsageError("missing operand")
    status = 0
    for path in operands:
        problem = _problem(process, options, path)
        if problem:
            process.warn(problem)
            status = 1
    return status


def _problem(process: Process, options: Options, path: str) -> str:
    env = process.env
    basic, extra = options.basic or options.portability, options.extra or options.portability
    if extra and any(part.startswith("-") for part in path.split("/")):
        return f"leading '-' in a component of file name {quote_name(path)}"
    if (basic or extra) and not path:
        return "empty file name"
    if basic:
        rest = path[len(_PORTABLE.match(path)[0]) :]  # type: ignore[index]
        if rest:
            return f"nonportable character {quote(rest[0], env)} in file name {quote_name(path)}"
    else:
        try:
            process.fs.stat(path, follow=False)
        except SysError as error:
            if error.errno != ENOENT or not path:
                return f"{quote_if_odd(path) if path else quote_name(path)}: {error.reason}"
    length, limit = byte_length(path), _POSIX_PATH if basic else PATH_MAX
    if length >= limit:
        return f"limit {limit - 1} exceeded by length {length} of file name {quote_name(path)}"
    most = _POSIX_NAME if basic else NAME_MAX
    for part in path.split("/"):
        if (size := byte_length(part)) > most:
            return f"limit {most} exceeded by length {size} of file name component {quote(part, env)}"
    return ""
