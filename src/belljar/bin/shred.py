"""shred - overwrite a file to hide its contents, and optionally delete it

Usage: shred [OPTION]... FILE...

Overwrite the specified FILE(s) repeatedly, in order to make it harder for even very expensive hardware probing to
recover the data.
"""

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.flags import O_CLOEXEC, O_WRONLY, SEEK_SET
from belljar.abi.paths import basename, dirname
from belljar.bin._kit import UsageError, flag, utility, value
from belljar.bin._kit.choices import pick
from belljar.bin._kit.quoting import quote, quote_if_odd
from belljar.bin._kit.sizes import parse_size
from belljar.kernel.process import CHUNK, Process

_HOW = {"unlink": (), "wipe": (), "wipesync": ()}
_BLOCK = 4096


@dataclass(frozen=True, slots=True)
class Options:
    force: bool = flag("-f", "--force", "change permissions to allow writing if necessary")
    passes: str = value("-n", "--iterations", "overwrite N times instead of the default (3)", metavar="N", default="3")
    source: str | None = value("--random-source", "get random bytes from FILE", metavar="FILE")
    size: str | None = value("-s", "--size", "shred this many bytes (suffixes like K, M, G accepted)", metavar="N")
    unlink: bool = flag("-u", "deallocate and remove file after overwriting")
    remove: str | None = value("--remove", "like -u but give control on HOW to delete", metavar="HOW", bare="wipesync")
    verbose: bool = flag("-v", "--verbose", "show progress")
    exact: bool = flag("-x", "--exact", "do not round file sizes up to the next full block")
    zero: bool = flag("-z", "--zero", "add a final overwrite with zeros to hide shredding")


@utility("shred", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if not operands:
        raise UsageError("missing file operand")
    if not (options.passes.isascii() and options.passes.isdecimal()):
        raise UsageError(f"invalid number of passes: {quote(options.passes, process.env)}", hint=False)
    size = parse_size(options.size) if options.size is not None else None
    if options.size is not None and (size is None or size < 0):
        raise UsageError(f"invalid file size: {quote(options.size, process.env)}", hint=False)
    how = "wipesync" if options.unlink else None
    if options.remove is not None:
        how = pick(process, "--remove", options.remove, _HOW)
    status = 0
    for path in operands:
        if not _shred(process, options, path, size, int(options.passes[:18]), how):
            status = 1
    return status


def _shred(process: Process, options: Options, path: str, size: int | None, passes: int, how: str | None) -> bool:
    shown = quote_if_odd(path)
    try:
        try:
            fd = process.open(path, O_WRONLY | O_CLOEXEC)
        except SysError as error:
            if not options.force or error.name != "EACCES":
                raise
            process.fs.chmod(path, 0o200)
            fd = process.open(path, O_WRONLY | O_CLOEXEC)
    except SysError as error:
        process.warn(f"{shown}: failed to open for writing: {error.reason}")
        return False
    try:
        stat = process.fstat(fd)
        if not stat.is_regular and not (size or 0):
            process.warn(f"{shown}: invalid file type")
            return False
        length = size if size is not None else stat.size
        if size is None and not options.exact:
            length = -(-length // _BLOCK) * _BLOCK
        total = passes + options.zero
        for number in range(1, total + 1):
            zeros = options.zero and number == total
            if options.verbose:
                process.warn(f"{shown}: pass {number}/{total} ({'000000' if zeros else 'random'})...")
            _overwrite(process, options, fd, length, zeros=zeros)
        if how is not None:
            process.fds[fd].truncate(0)
    except SysError as error:
        process.warn(f"{shown}: error writing: {error.reason}")
        return False
    finally:
        process.close(fd)
    return how is None or _remove(process, path, how, verbose=options.verbose)


def _overwrite(process: Process, options: Options, fd: int, length: int, *, zeros: bool) -> None:
    process.seek(fd, 0, SEEK_SET)
    source = process.chunks(options.source) if options.source is not None and not zeros else None
    while length > 0:
        part = min(length, CHUNK)
        process.budget.charge(1 + part // 4096)
        if zeros:
            data = bytes(part)
        elif source is not None:
            data = next(source, b"")[:part]
            if not data:
                raise UsageError(f"{options.source}: end of file", hint=False)
        else:
            data = process.kernel.machine.entropy.random_bytes(part)
        process.write_all(fd, data)
        length -= len(data)


def _remove(process: Process, path: str, how: str, *, verbose: bool) -> bool:
    """Rename the file to ever shorter names before it goes, so that not even its name stays."""
    shown = current = path
    if verbose:
        process.warn(f"{quote_if_odd(shown)}: removing")
    try:
        if how != "unlink":
            for length in range(len(basename(path)), 0, -1):
                process.budget.charge()
                target = (dirname(path) + "/" if "/" in path else "") + "0" * length
                try:
                    process.fs.stat(target, follow=False)
                    continue
                except SysError:
                    process.fs.rename(current, target)
                if verbose:
                    process.warn(f"{quote_if_odd(current)}: renamed to {quote_if_odd(target)}")
                current = target
        process.fs.unlink(current)
    except SysError as error:
        process.warn(f"{quote_if_odd(shown)}: failed to remove: {error.reason}")
        return False
    if verbose:
        process.warn(f"{quote_if_odd(shown)}: removed")
    return True
