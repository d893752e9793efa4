"""timeout - run a command with a time limit

Usage: timeout [OPTION] DURATION COMMAND [ARG]...

Start COMMAND, and kill it if still running after DURATION: a number with an optional suffix s, m, h or d. The exit
status is 124 if the command timed out, 125 if timeout itself fails, 126 or 127 if the command can't be run or found.
"""

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.signals import Signal, parse_signal, signal_name
from belljar.bin._kit import UsageError, flag, utility, value
from belljar.bin._kit.quoting import quote
from belljar.bin.sleep import parse_interval
from belljar.kernel.process import Process
from belljar.kernel.status import ExitStatus


@dataclass(frozen=True, slots=True)
class Options:
    preserve_status: bool = flag(
        "-p", "--preserve-status", "exit with the same status as COMMAND, even when it times out"
    )
    foreground: bool = flag("-f", "--foreground", "allow COMMAND to read from the TTY; do not time out its children")
    kill_after: str | None = value(
        "-k", "--kill-after", "also send KILL if still running this long after", metavar="DURATION"
    )
    signal: str = value("-s", "--signal", "specify the signal to be sent on timeout", metavar="SIGNAL", default="TERM")
    verbose: bool = flag("-v", "--verbose", "diagnose to stderr any signal sent upon timeout")


@utility("timeout", Options, order="first-operand-ends", usage_status=125)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if len(operands) < 2:
        process.error("Try 'timeout --help' for more information.\n")
        return 125
    duration, kill_after = _interval(process, operands[0]), _interval(process, options.kill_after or "0")
    number = parse_signal(options.signal)
    if number is None:
        raise UsageError(f"{quote(options.signal, process.env)}: invalid signal")
    try:
        child = process.spawn(operands[1:], pgid=None if options.foreground else 0)
    except SysError as error:
        process.warn(f"failed to run command {quote(operands[1], process.env)}: {error.reason}")
        return 127 if error.name in ("ENOENT", "ENOTDIR") else 126
    hub = process.kernel.hub
    fired: list[int] = []

    def strike(signal: int) -> None:
        fired.append(signal)
        if options.verbose:
            process.warn(f"sending signal {signal_name(signal)} to command {quote(operands[1], process.env)}")
        if options.foreground:
            child.deliver(signal)
        else:
            process.kernel.signal_group(child.pgid, signal, space=process.space)
            if signal not in (Signal.KILL, Signal.CONT):
                process.kernel.signal_group(child.pgid, Signal.CONT, space=process.space)

    timers = []
    if duration:
        timers.append(hub.call_later(duration, lambda: strike(number)))
        if kill_after:
            timers.append(hub.call_later(duration + kill_after, lambda: strike(Signal.KILL)))
    try:
        status = process.wait_for(child)
    finally:
        for timer in timers:
            timer.cancel()
    return _outcome(status, fired, preserve=options.preserve_status)


def _outcome(status: ExitStatus, fired: list[int], *, preserve: bool) -> int:
    if not fired or preserve:
        return status.shell
    return 137 if status.signal == Signal.KILL else 124


def _interval(process: Process, text: str) -> float:
    seconds = parse_interval(text)
    if seconds is None:
        raise UsageError(f"invalid time interval {quote(text, process.env)}")
    return seconds
