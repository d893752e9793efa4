"""man - show what a command is for and how it is used

Usage: man NAME...
"""

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import flag, utility
from belljar.bin._kit.program import Program
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    keyword: bool = flag("-k", "--apropos", "search the one-line descriptions")
    whatis: bool = flag("-f", "--whatis", "show the one-line description")


@utility("man", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if not operands:
        process.error("What manual page do you want?\nFor example, try 'man man'.\n")
        return 1
    status = 0
    if options.keyword:
        for name in sorted(entry.name for entry in process.fs.readdir("/usr/bin")):
            program = process.kernel.programs(name)
            if isinstance(program, Program) and any(
                word.lower() in f"{name} {program.summary}".lower() for word in operands
            ):
                process.print(f"{name} (1) - {program.summary}")
        return 0
    for name in operands:
        program = process.kernel.programs(name)
        if not isinstance(program, Program):
            process.error(f"No manual entry for {name}\n")
            status = 16
        elif options.whatis:
            process.print(f"{name} (1) - {program.summary}")
        else:
            process.print(program.help(), end="")
    return status
