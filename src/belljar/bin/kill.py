"""kill - send signals to processes

Usage: kill [-s SIGNAL | -SIGNAL] PID...
       kill -l [SIGNAL]...
       kill -L

Send SIGNAL (TERM) to each PID, or list the names of signals.
"""

from belljar.abi.errors import SysError
from belljar.abi.signals import Signal, parse_signal, signal_name
from belljar.bin._kit import utility
from belljar.bin._kit.program import version
from belljar.kernel.process import Process
from belljar.libc.numbers import parse_integer
from belljar.shell.builtins.trap import signal_table


@utility("kill")
def main(process: Process, args: list[str]) -> int:
    if not args or args[0] in ("-h", "--help"):
        process.print(main.help().rstrip())
        return 0 if args else 1
    if args[0] in ("-V", "--version"):
        process.print(version("kill"))
        return 0
    if args[0] in ("-l", "--list", "-L", "--table"):
        return list_signals(process, args[0] in ("-L", "--table"), args[1:])
    number: int | None = int(Signal.TERM)
    spec = ""
    if args[0] in ("-s", "--signal") and len(args) > 1:
        spec, args = args[1], args[2:]
    elif args[0].startswith("--signal="):
        spec, args = args[0][9:], args[1:]
    elif args[0].startswith("-") and args[0] != "--" and len(args) > 1:
        spec, args = args[0][1:], args[1:]
    if spec:
        number = parse_signal(spec)
        if number is None:
            process.warn(f"unknown signal {spec}; valid signals:")
            list_signals(process, False, [])
            return 1
    if args[:1] == ["--"]:
        args = args[1:]
    status = 0
    for arg in args:
        pid = parse_integer(arg)
        if pid is None:
            process.warn(f"failed to parse argument: '{arg}'")
            status = 1
            continue
        try:
            process.kill(pid, number if number is not None else int(Signal.TERM))
        except SysError as error:
            process.warn(f"({pid}): {error.reason}")
            status = 1
    return status


def list_signals(process: Process, table: bool, specs: list[str]) -> int:
    if table:
        process.print(signal_table(), end="")
        return 0
    if not specs:
        names = [signal_name(number) for number in range(1, 32)]
        process.print(" ".join(names))
        return 0
    status = 0
    for spec in specs:
        number = parse_signal(spec)
        if number is None and spec.isdecimal() and len(spec) == 3 and 128 < int(spec) < 192:
            number = int(spec) - 128
        if number is None:
            process.warn(f"unknown signal name {spec}")
            status = 1
        else:
            process.print(signal_name(number) if spec.isdecimal() else str(number))
    return status
