"""tee - read from standard input and write to standard output and files

Usage: tee [OPTION]... [FILE]...

Copy standard input to each FILE, and also to standard output.
"""

from belljar.abi.dataclass import dataclass
from belljar.abi.errno import EPIPE
from belljar.abi.errors import SysError
from belljar.abi.flags import O_APPEND, O_CREAT, O_TRUNC, O_WRONLY
from belljar.abi.signals import Signal
from belljar.bin._kit import flag, utility, value
from belljar.bin._kit.choices import pick
from belljar.bin._kit.quoting import quote_if_odd
from belljar.kernel.process import IGNORE, Process

_MODES = ("warn", "warn-nopipe", "exit", "exit-nopipe")


@dataclass(frozen=True, slots=True)
class Options:
    append: bool = flag("-a", "--append", "append to the given FILEs, do not overwrite")
    ignore_interrupts: bool = flag("-i", "--ignore-interrupts", "ignore interrupt signals")
    pipe: bool = flag("-p", "operate in a more appropriate MODE with pipes")
    mode: str | None = value("--output-error", "set behavior on write error", metavar="MODE", bare="warn-nopipe")


@utility("tee", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    mode = options.mode if options.mode is not None else "warn-nopipe" if options.pipe else ""
    if options.mode is not None:
        mode = pick(process, "--output-error", mode, {name: () for name in _MODES})
    if options.ignore_interrupts:
        process.catch(Signal.INT, IGNORE)
    if mode:
        process.catch(Signal.PIPE, IGNORE)
    outputs = {1: "standard output"}
    status = 0
    for name in operands:
        try:
            outputs[process.open(name, O_WRONLY | O_CREAT | (O_APPEND if options.append else O_TRUNC))] = name
        except SysError as error:
            process.warn(f"{quote_if_odd(name)}: {error.reason}")
            status = 1
            if mode.startswith("exit"):
                return status
    while outputs and (data := process.read(0)):
        for fd, name in list(outputs.items()):
            try:
                process.write_all(fd, data)
            except SysError as error:
                del outputs[fd]
                if error.errno == EPIPE and mode.endswith("nopipe"):
                    continue
                process.warn(f"{quote_if_odd(name)}: {error.reason}")
                status = 1
                if mode.startswith("exit"):
                    return status
    return status
