"""printenv - print all or part of environment

Usage: printenv [OPTION]... [VARIABLE]...

Print the values of the specified environment VARIABLEs, or name and value pairs for them all.
"""

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import flag, utility
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    null: bool = flag("-0", "--null", "end each output line with NUL, not newline")


@utility("printenv", Options, usage_status=2)
def main(process: Process, options: Options, operands: list[str]) -> int:
    end = "\0" if options.null else "\n"
    if not operands:
        for name, text in process.env.items():
            process.print(f"{name}={text}", end)
        return 0
    found = [process.env[name] for name in operands if name in process.env]
    for text in found:
        process.print(text, end)
    return 0 if len(found) == len(operands) else 1
