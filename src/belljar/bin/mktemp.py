"""mktemp - create a temporary file or directory, safely, and print its name

Usage: mktemp [OPTION]... [TEMPLATE]

TEMPLATE must contain at least 3 consecutive 'X's in last component. If TEMPLATE is not specified, use tmp.XXXXXXXXXX,
and --tmpdir is implied. Files are created u+rw, and directories u+rwx, minus umask restrictions.
"""

import re
from collections.abc import Mapping

from belljar.abi.dataclass import dataclass
from belljar.abi.errno import EEXIST
from belljar.abi.errors import SysError
from belljar.abi.flags import O_CLOEXEC, O_CREAT, O_EXCL, O_RDWR
from belljar.bin._kit import UsageError, flag, utility, value
from belljar.bin._kit.quoting import quote
from belljar.kernel.process import Process

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_TRIES = 100


@dataclass(frozen=True, slots=True)
class Options:
    directory: bool = flag("-d", "--directory", "create a directory, not a file")
    dry_run: bool = flag("-u", "--dry-run", "do not create anything; merely print a name (unsafe)")
    quiet: bool = flag("-q", "--quiet", "suppress diagnostics about file/dir-creation failure")
    suffix: str | None = value("--suffix", "append SUFF to TEMPLATE; SUFF must not contain a slash", metavar="SUFF")
    tmpdir: str | None = value("--tmpdir", "interpret TEMPLATE relative to DIR", metavar="DIR", bare="")
    prefix_directory: str | None = value("-p", "like --tmpdir=DIR", metavar="DIR")
    old: bool = flag("-t", "interpret TEMPLATE as a single file name component, relative to a directory")


@utility("mktemp", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    env = process.env
    if len(operands) > 1:
        raise UsageError("too many templates")
    template = operands[0] if operands else "tmp.XXXXXXXXXX"
    stem, suffix = _split(template, options.suffix, env)
    if len(re.search(r"X*\Z", stem)[0]) < 3:  # type: ignore[index]
        raise UsageError(f"too few X's in template {quote(template, env)}", hint=False)
    directory = _directory(process, options, stem, given=bool(operands))
    if directory is not None:
        stem = f"{directory}{'' if directory.endswith('/') else '/'}{stem}"
    try:
        process.print(_create(process, options, stem, suffix))
    except SysError as error:
        if not options.quiet:
            kind = "directory" if options.directory else "file"
            shown = quote(stem + suffix, env)
            process.warn(f"failed to create {kind} via template {shown}: {error.reason}")
        return 1
    return 0


def _split(template: str, suffix: str | None, env: Mapping[str, str]) -> tuple[str, str]:
    """The part that ends in X's, and what follows them."""
    if suffix is not None:
        if not template.endswith("X"):
            raise UsageError(f"with --suffix, template {quote(template, env)} must end in X", hint=False)
        stem = template
    else:
        last = template.rfind("X")
        stem, suffix = template[: last + 1], template[last + 1 :]
    if "/" in suffix:
        raise UsageError(f"invalid suffix {quote(suffix, env)}, contains directory separator", hint=False)
    return stem, suffix


def _directory(process: Process, options: Options, stem: str, *, given: bool) -> str | None:
    env = process.env
    wanted = options.tmpdir if options.tmpdir is not None else options.prefix_directory
    if options.old:
        if "/" in stem:
            raise UsageError(f"invalid template, {quote(stem, env)}, contains directory separator", hint=False)
        return env.get("TMPDIR") or wanted or "/tmp"
    if wanted is None and given:
        return None
    if stem.startswith("/"):
        message = f"invalid template, {quote(stem, env)}; with --tmpdir, it may not be absolute"
        raise UsageError(message, hint=False)
    return wanted or env.get("TMPDIR") or "/tmp"


def _create(process: Process, options: Options, stem: str, suffix: str) -> str:
    base = stem.rstrip("X")
    size = len(stem) - len(base)
    process.budget.charge_size(size)
    for _ in range(_TRIES):
        process.budget.charge(size)
        random = process.kernel.machine.entropy.random_bytes(size)
        path = base + "".join([_LETTERS[byte % len(_LETTERS)] for byte in random]) + suffix
        try:
            if options.dry_run:
                process.fs.stat(path, follow=False)
            elif options.directory:
                process.fs.mkdir(path, 0o700)
                return path
            else:
                process.close(process.open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600))
                return path
        except SysError as error:
            if options.dry_run:
                return path
            if error.errno != EEXIST:
                raise
    raise SysError(EEXIST)
