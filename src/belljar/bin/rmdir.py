"""rmdir - remove empty directories

Usage: rmdir [OPTION]... DIRECTORY...

Remove the DIRECTORY(ies), if they are empty.
"""

from belljar.abi.dataclass import dataclass
from belljar.abi.errno import EBUSY, EEXIST, ENOTDIR, ENOTEMPTY
from belljar.abi.errors import SysError
from belljar.bin._kit import UsageError, flag, utility
from belljar.bin._kit.quoting import quote_name
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    ignore: bool = flag("--ignore-fail-on-non-empty", "ignore each failure to remove a non-empty directory")
    parents: bool = flag("-p", "--parents", "remove DIRECTORY and its ancestors")
    verbose: bool = flag("-v", "--verbose", "output a diagnostic for every directory processed")


@utility("rmdir", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if not operands:
        raise UsageError("missing operand")
    status = 0
    for operand in operands:
        path = operand
        while True:
            removed = _remove(process, options, path, above=path is not operand)
            if not removed:
                status = status if removed is None else 1
                break
            stripped = path.rstrip("/")
            path = stripped.rpartition("/")[0].rstrip("/")
            if not options.parents or not path:
                break
    return status


def _remove(process: Process, options: Options, path: str, *, above: bool) -> bool | None:
    """Whether a directory was removed; None if it is not empty and that doesn't matter."""
    process.budget.charge()
    shown = quote_name(path)
    if options.verbose:
        process.print(f"{process.name}: removing directory, {shown}")
    try:
        process.fs.rmdir(path)
    except SysError as error:
        if options.ignore and error.errno in (ENOTEMPTY, EEXIST, EBUSY):
            return None
        reason = error.reason
        if error.errno == ENOTDIR and path.endswith("/") and _is_link(process, path.rstrip("/")):
            reason = "Symbolic link not followed"
        what = "failed to remove directory" if above else "failed to remove"
        process.warn(f"{what} {shown}: {reason}")
        return False
    return True


def _is_link(process: Process, path: str) -> bool:
    link = process.fs.try_stat(path, follow=False)
    return link is not None and link.is_symlink and process.fs.is_dir(path)
