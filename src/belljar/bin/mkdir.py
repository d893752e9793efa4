"""mkdir - make directories

Usage: mkdir [OPTION]... DIRECTORY...

Create the DIRECTORY(ies), if they do not already exist.
"""

from belljar.abi.dataclass import dataclass
from belljar.abi.errno import EEXIST, ENOTDIR
from belljar.abi.errors import SysError
from belljar.bin._kit import UsageError, flag, utility, value
from belljar.bin._kit.modes import ModeChange, parse_mode
from belljar.bin._kit.quoting import quote, quote_name
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    mode: str | None = value("-m", "--mode", "set file mode (as in chmod), not a=rwx - umask", metavar="MODE")
    parents: bool = flag("-p", "--parents", "no error if existing, make parent directories as needed")
    verbose: bool = flag("-v", "--verbose", "print a message for each created directory")
    context: bool = flag("-Z", "(ignored)")


@utility("mkdir", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if not operands:
        raise UsageError("missing operand")
    change = parse_mode(options.mode) if options.mode is not None else None
    if options.mode is not None and change is None:
        raise UsageError(f"invalid mode {quote(options.mode, process.env)}", hint=False)
    status = 0
    for path in operands:
        process.budget.charge()
        try:
            if options.parents:
                make_parents(process, path, change, verbose=options.verbose)
            else:
                make(process, path, change, verbose=options.verbose)
        except SysError as error:
            shown = quote(error.path or path, process.env)
            process.warn(f"cannot create directory {shown}: {error.reason}")
            status = 1
    return status


def make(process: Process, path: str, change: ModeChange | None, *, verbose: bool) -> None:
    fs = process.fs
    fs.mkdir(path)
    if verbose:
        process.print(f"{process.name}: created directory {quote_name(path)}")
    if change is not None:
        fs.chmod(path, change.apply(0o777, fs.umask, directory=True))


def make_parents(process: Process, path: str, change: ModeChange | None, *, verbose: bool) -> None:
    """Make parent directories, with the default mode and u+wx; existing ones are left as they are."""
    fs = process.fs
    stripped = path.rstrip("/") or path
    end = 0
    while (end := stripped.find("/", end + 1)) != -1:
        if stripped[end - 1] == "/":
            continue
        above = stripped[:end]
        process.budget.charge()
        if not _make_missing(process, above, ENOTDIR):
            continue
        if verbose:
            process.print(f"{process.name}: created directory {quote_name(above)}")
        if fs.umask & 0o300:
            fs.chmod(above, 0o777 & ~fs.umask | 0o300)
    if _make_missing(process, stripped, EEXIST):
        if verbose:
            process.print(f"{process.name}: created directory {quote_name(stripped)}")
        if change is not None:
            fs.chmod(stripped, change.apply(0o777, fs.umask, directory=True))


def _make_missing(process: Process, path: str, otherwise: int) -> bool:
    """Whether it had to be made; `otherwise` is the error if something else has the name."""
    fs = process.fs
    if fs.is_dir(path):
        return False
    try:
        fs.mkdir(path)
    except SysError as error:
        raise SysError(otherwise if error.errno == EEXIST else error.errno, path) from None
    return True
