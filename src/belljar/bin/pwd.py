"""pwd - print the name of the working directory

Usage: pwd [OPTION]...
"""

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import choice, utility
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    logical: bool = choice(
        {"-L": True, "--logical": True, "-P": False, "--physical": False},
        "-L: PWD from the environment, even with symlinks; -P: without symlinks (the default)",
        False,
    )


@utility("pwd", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if operands:
        process.warn("ignoring non-option arguments")
    named = process.env.get("PWD", "")
    if options.logical and named.startswith("/") and not {".", ".."} & set(named.split("/")):
        try:
            here, there = process.fs.stat("."), process.fs.stat(named)
        except SysError:
            pass
        else:
            if (here.dev, here.ino) == (there.dev, there.ino):
                process.print(named)
                return 0
    process.print(process.fs.getcwd())
    return 0
