"""setsid - run a program in a new session

Usage: setsid [OPTION]... PROGRAM [ARG]...
"""

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import UsageError, flag, utility
from belljar.bin.env import become
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    terminal: bool = flag("-c", "--ctty", "set the controlling terminal to the current one")
    fork: bool = flag("-f", "--fork", "always fork")
    wait: bool = flag("-w", "--wait", "wait for the program to exit, and return with its status")


@utility("setsid", Options, order="first-operand-ends", usage_status=1)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if not operands:
        raise UsageError("no command specified")

    def lead(leader: Process) -> int:
        leader.setsid()
        if options.terminal:
            try:
                leader.ioctl(0, "set_controlling")
            except SysError as error:
                leader.warn(f"failed to set the controlling terminal: {error.reason}")
                return 1
        return become(leader, operands, leader.env, lambda name, _: f"failed to execute {name}")

    if process.pgid != process.pid and not options.fork:
        return lead(process)
    # The leader of a group can't leave it.
    child = process.fork(lead)
    return process.wait_for(child).shell if options.wait else 0
