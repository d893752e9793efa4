"""nohup - run a command immune to hangups

Usage: nohup COMMAND [ARG]...

If standard output is a terminal, append output to 'nohup.out' if possible, '$HOME/nohup.out' otherwise.
"""

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.flags import O_APPEND, O_CREAT, O_RDONLY, O_WRONLY
from belljar.abi.signals import Signal
from belljar.bin._kit import UsageError, utility
from belljar.bin._kit.quoting import quote
from belljar.bin.env import become
from belljar.kernel.process import IGNORE, Process


@dataclass(frozen=True, slots=True)
class Options:
    pass


@utility("nohup", Options, order="first-operand-ends", usage_status=125)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if not operands:
        raise UsageError("missing operand")
    ignoring_input = process.isatty(0)
    if ignoring_input:
        process.dup2(process.open("/dev/null", O_RDONLY), 0)
    if process.isatty(1):
        fd, name = open_log(process)
        prefix = "ignoring input and " if ignoring_input else ""
        process.warn(f"{prefix}appending output to {quote(name, process.env)}")
        process.dup2(fd, 1)
    elif ignoring_input:
        process.warn("ignoring input")
    if process.isatty(2):
        process.dup2(1, 2)
    process.catch(Signal.HUP, IGNORE)
    return become(process, operands, process.env, lambda name, _: f"failed to run command '{name}'")


def open_log(process: Process) -> tuple[int, str]:
    flags = O_WRONLY | O_CREAT | O_APPEND
    home = f"{process.env.get('HOME', '/')}/nohup.out"
    try:
        return process.open("nohup.out", flags, 0o600), "nohup.out"
    except SysError:
        return process.open(home, flags, 0o600), home
