"""readlink - print resolved symbolic links or canonical file names

Usage: readlink [OPTION]... FILE...

Print value of a symbolic link or canonical file name.
"""

from typing import Literal

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import UsageError, choice, flag, utility
from belljar.bin._kit.quoting import quote_if_odd
from belljar.bin._kit.realpath import real_path
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    canonical: Literal["none", "last", "any"] | None = choice(
        {
            "-f": "last",
            "--canonicalize": "last",
            "-e": "none",
            "--canonicalize-existing": "none",
            "-m": "any",
            "--canonicalize-missing": "any",
        },
        "follow every symlink in every component; -f: all but the last must exist; -e: all must; -m: none need",
    )
    no_newline: bool = flag("-n", "--no-newline", "do not output the trailing delimiter")
    verbose: bool | None = choice(
        {"-q": False, "--quiet": False, "-s": False, "--silent": False, "-v": True, "--verbose": True},
        "suppress most error messages (on by default); -v: report error messages",
    )
    zero: bool = flag("-z", "--zero", "end each output line with NUL, not newline")


@utility("readlink", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if not operands:
        raise UsageError("missing operand")
    newline = not options.no_newline
    if options.no_newline and len(operands) > 1:
        process.warn("ignoring --no-newline with multiple arguments")
        newline = True
    end = ("\0" if options.zero else "\n") if newline else ""
    status = 0
    for path in operands:
        process.budget.charge()
        try:
            if options.canonical is not None:
                process.print(real_path(process, path, options.canonical), end=end)
            else:
                process.print(process.fs.readlink(path), end=end)
        except SysError as error:
            status = 1
            if options.verbose:
                process.warn(f"{quote_if_odd(path)}: {error.reason}")
    return status
