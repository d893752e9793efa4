"""realpath - print the resolved path

Usage: realpath [OPTION]... FILE...

Print the resolved absolute file name; all but the last component must exist.
"""

from posixpath import normpath
from typing import Literal

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import UsageError, choice, flag, utility, value
from belljar.bin._kit.quoting import quote_if_odd
from belljar.bin._kit.realpath import is_inside, real_path, relative_to
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    missing: Literal["none", "last", "any"] = choice(
        {
            "-e": "none",
            "--canonicalize-existing": "none",
            "-E": "last",
            "--canonicalize": "last",
            "-m": "any",
            "--canonicalize-missing": "any",
        },
        "-e: all components of the path must exist; -m: no path components need exist or be a directory",
        default="last",
    )
    links: str = choice(
        {
            "-L": "logical",
            "--logical": "logical",
            "-P": "physical",
            "--physical": "physical",
            "-s": "none",
            "--strip": "none",
            "--no-symlinks": "none",
        },
        "-L: resolve '..' components before symlinks; -P: resolve symlinks as encountered; -s: don't expand symlinks",
        default="physical",
    )
    quiet: bool = flag("-q", "--quiet", "suppress most error messages")
    relative_to: str | None = value("--relative-to", "print the resolved path relative to DIR", metavar="DIR")
    relative_base: str | None = value("--relative-base", "print absolute paths unless paths below DIR", metavar="DIR")
    zero: bool = flag("-z", "--zero", "end each output line with NUL, not newline")


@utility("realpath", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if not operands:
        raise UsageError("missing operand")
    base, limit = options.relative_to, options.relative_base
    try:
        path = base or ""
        base = _resolve(process, options, path) if base is not None else None
        path = limit or ""
        limit = _resolve(process, options, path) if limit is not None else None
        for name, found in ((options.relative_to, base), (options.relative_base, limit)):
            if found is not None and options.missing == "none" and not process.fs.stat(found).is_dir:
                process.warn(f"{quote_if_odd(name or '')}: Not a directory")
                return 1
    except SysError as error:
        process.warn(f"{quote_if_odd(path)}: {error.reason}")
        return 1
    if limit is not None:
        if base is None:
            base = limit
        elif not is_inside(base, limit):
            base = limit = None
    status = 0
    for name in operands:
        process.budget.charge()
        try:
            shown = _resolve(process, options, name)
        except SysError as error:
            status = 1
            if not options.quiet:
                process.warn(f"{quote_if_odd(name)}: {error.reason}")
            continue
        if base is not None and (limit is None or is_inside(shown, limit)):
            shown = relative_to(shown, base)
        process.print(shown, end="\0" if options.zero else "\n")
    return status


def _resolve(process: Process, options: Options, path: str) -> str:
    if options.links == "physical":
        return real_path(process, path, options.missing)
    flat = real_path(process, path, options.missing, links=False)
    return real_path(process, normpath(flat), options.missing) if options.links == "logical" else flat
