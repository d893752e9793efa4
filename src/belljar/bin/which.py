"""which - locate a command

Usage: which [-a] [-s] NAME...

Print the files that would be executed for each NAME in the current environment.
"""

from belljar.abi.base import DEFAULT_PATH
from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.flags import X_OK
from belljar.bin._kit import flag, utility
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    all: bool = flag("-a", "print all matching files, not only the first")
    silent: bool = flag("-s", "print nothing, only return an exit status")


@utility("which", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    status = 0 if operands else 1
    for name in operands:
        found = matches(process, name)
        if not found:
            status = 1
        if not options.silent:
            for path in found if options.all else found[:1]:
                process.print(path)
    return status


def matches(process: Process, name: str) -> list[str]:
    """Every executable file of that name, in the order of PATH."""
    if "/" in name:
        return [name] if _runnable(process, name) else []
    directories = process.env.get("PATH", DEFAULT_PATH).split(":")
    return [path for d in directories if _runnable(process, path := f"{d or '.'}/{name}")]


def _runnable(process: Process, path: str) -> bool:
    try:
        place = process.fs.resolve(path)
    except SysError:
        return False
    return not place.node.is_dir and process.fs.credentials.may(place.node, X_OK)
