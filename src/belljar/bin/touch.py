"""touch - change file timestamps

Usage: touch [OPTION]... FILE...

Update the access and modification times of each FILE to the current time. A FILE argument that does not exist is
created empty, unless -c or -h is supplied.
"""

from belljar.abi.dataclass import dataclass
from belljar.abi.errno import ENOENT
from belljar.abi.errors import SysError
from belljar.abi.flags import O_CLOEXEC, O_CREAT, O_NONBLOCK, O_WRONLY
from belljar.abi.records import NANO
from belljar.bin._kit import UsageError, flag, utility, value
from belljar.bin._kit.choices import pick
from belljar.bin._kit.dates import BadDate, parse_date
from belljar.bin._kit.quoting import quote, quote_name
from belljar.bin._kit.stamps import parse_stamp
from belljar.kernel.process import Process

_TIMES = {"atime": ("access", "use"), "mtime": ("modify",)}


@dataclass(frozen=True, slots=True)
class Options:
    access: bool = flag("-a", "change only the access time")
    no_create: bool = flag("-c", "--no-create", "do not create any files")
    date: str | None = value("-d", "--date", "parse STRING and use it instead of current time", metavar="STRING")
    ignored: bool = flag("-f", "(ignored)")
    no_dereference: bool = flag("-h", "--no-dereference", "affect each symbolic link instead of any referenced file")
    modified: bool = flag("-m", "change only the modification time")
    reference: str | None = value("-r", "--reference", "use this file's times instead of current time", metavar="FILE")
    stamp: str | None = value("-t", "use [[CC]YY]MMDDhhmm[.ss] instead of current time", metavar="STAMP")
    time: str | None = value("--time", "change the specified time: access, atime, use, modify, mtime", metavar="WORD")


@utility("touch", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    atime: int | None
    mtime: int | None
    atime, mtime = _times(process, options)
    word = pick(process, "--time", options.time, _TIMES) if options.time is not None else ""
    access = options.access or word == "atime"
    modified = options.modified or word == "mtime"
    if not operands:
        raise UsageError("missing file operand")
    if access != modified:
        atime, mtime = (atime, None) if access else (None, mtime)
    now = options.date is None and options.stamp is None and options.reference is None and access == modified
    status = 0
    for path in operands:
        process.budget.charge()
        try:
            _touch(process, options, path, atime, mtime, now=now)
        except _TouchError as error:
            process.warn(str(error))
            status = 1
    return status


class _TouchError(Exception):
    pass


def _times(process: Process, options: Options) -> tuple[int, int]:
    """The access and modification times to set."""
    now = process.kernel.now()
    atime = mtime = now
    if options.stamp is not None and (options.date is not None or options.reference is not None):
        raise UsageError("cannot specify times from more than one source")
    if options.reference is not None:
        try:
            stat = process.fs.stat(options.reference, follow=not options.no_dereference)
        except SysError as error:
            what = f"failed to get attributes of {quote_name(options.reference)}"
            raise UsageError(f"{what}: {error.reason}", hint=False) from None
        atime, mtime = stat.atime, stat.mtime
    if options.date is not None:
        try:
            atime, mtime = (parse_date(options.date, base, process.env) for base in (atime, mtime))
        except BadDate:
            raise UsageError(f"invalid date format {quote(options.date, process.env)}", hint=False) from None
    if options.stamp is not None:
        seconds = parse_stamp(options.stamp, now // NANO, process.env)
        if seconds is None:
            raise UsageError(f"invalid date format {quote(options.stamp, process.env)}", hint=False)
        atime = mtime = seconds * NANO
    return atime, mtime


def _touch(process: Process, options: Options, path: str, atime: int | None, mtime: int | None, *, now: bool) -> None:
    fs = process.fs
    opened: SysError | None = None
    if path == "-":
        # Standard output; a pipe keeps no times, and nobody minds.
        if process.fstat(1).is_regular or process.fstat(1).is_dir:
            fs.set_times(process.fds[1].place, atime, mtime, path, now=now)
        return
    if not options.no_create and not options.no_dereference:
        try:
            process.close(process.open(path, O_WRONLY | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0o666))
        except SysError as error:
            opened = error
    try:
        fs.utimens(path, atime, mtime, follow=not options.no_dereference, now=now)
    except SysError as error:
        if error.errno == ENOENT and options.no_create:
            return
        if opened is not None and opened.name not in ("EISDIR", "EINVAL", "EPERM", "ENXIO"):
            raise _TouchError(f"cannot touch {quote_name(path)}: {opened.reason}") from None
        raise _TouchError(f"setting times of {quote_name(path)}: {error.reason}") from None
