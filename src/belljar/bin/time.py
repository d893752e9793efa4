"""time - run programs and summarize system resource usage

Usage: time [-p] [-o FILE] [-f FORMAT] COMMAND [ARG]...

FORMAT has %e (seconds elapsed), %U (user), %S (system), %P (share of the CPU), %C (the command), %x (exit status).
"""

import re

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.flags import O_APPEND, O_CREAT, O_TRUNC, O_WRONLY
from belljar.abi.paths import fsencode
from belljar.bin._kit import UsageError, flag, utility, value
from belljar.kernel.process import Process

_DEFAULT = (
    "%Uuser %Ssystem %Eelapsed %PCPU (%Xavgtext+%Davgdata %Mmaxresident)k\n"
    "%Iinputs+%Ooutputs (%Fmajor+%Rminor)pagefaults %Wswaps"
)


@dataclass(frozen=True, slots=True)
class Options:
    append: bool = flag("-a", "--append", "with -o FILE, append instead of overwriting")
    format: str | None = value("-f", "--format", "use the specified FORMAT", metavar="FORMAT")
    output: str | None = value("-o", "--output", "write to FILE instead of standard error", metavar="FILE")
    portability: bool = flag("-p", "--portability", "print POSIX standard 1003.2 conformant string")
    quiet: bool = flag("-q", "--quiet", "do not print information about abnormal termination")
    verbose: bool = flag("-v", "--verbose", "print all resource usage information")


@utility("time", Options, order="first-operand-ends", usage_status=125)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if not operands:
        raise UsageError("missing program to run")
    clock = process.kernel.hub.clock
    began, cpu_began = clock.monotonic(), process.budget.cpu
    try:
        status = process.run(operands)
    except SysError as error:
        process.warn(f"cannot run {operands[0]}: {error.reason}")
        return 127 if error.name in ("ENOENT", "ENOTDIR") else 126
    elapsed, cpu = clock.monotonic() - began, process.budget.cpu - cpu_began
    lines = []
    if not options.quiet and (status.code or status.signal):
        what = (
            f"terminated by signal {status.signal}" if status.signal else f"exited with non-zero status {status.code}"
        )
        lines.append(f"Command {what}")
    template = "real %e\nuser %U\nsys %S" if options.portability else options.format or _DEFAULT
    lines.append(fill(template, elapsed, cpu, operands, status.shell))
    text = fsencode("\n".join(lines) + "\n")
    if options.output is None:
        process.write_all(2, text)
    else:
        flags = O_WRONLY | O_CREAT | (O_APPEND if options.append else O_TRUNC)
        process.write_file(options.output, text, flags=flags)
    return status.shell


def fill(template: str, elapsed: float, cpu: float, command: list[str], status: int) -> str:
    minutes, seconds = divmod(elapsed, 60)
    values = {
        "e": f"{elapsed:.2f}", "U": f"{cpu:.2f}", "S": "0.00", "E": f"{int(minutes)}:{seconds:05.2f}",
        "P": f"{int(cpu / elapsed * 100) if elapsed else 0}%", "C": " ".join(command), "x": str(status), "%": "%",
    }  # fmt: skip
    return re.sub(r"%(.)", lambda m: values.get(m[1], "0"), template).replace("\\n", "\n").replace("\\t", "\t")
