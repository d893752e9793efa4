"""dc - an arbitrary precision reverse-Polish calculator

Usage: dc [-V] [-e EXPRESSION] [-f FILE] [FILE]...
"""

from __future__ import annotations

from collections.abc import Iterator

from belljar.abi.errors import SysError
from belljar.bin._kit import UsageError, utility
from belljar.bin.bc import lines
from belljar.bin.dc.calculator import Calculator, Quit, Text
from belljar.kernel.process import Process


@utility("dc")
def main(process: Process, args: list[str]) -> int:
    calculator = Calculator(process)
    try:
        used = False
        for text in programs(process, args, calculator):
            used = True
            calculator.run(text)
        if not used:
            calculator.run(Text("", calculator.input))
    except Quit as leave:
        return leave.status
    return 0


def programs(process: Process, args: list[str], calculator: Calculator) -> Iterator[Text]:
    """The texts to run, in the order of the command line."""
    index = 0
    while index < len(args):
        arg = args[index]
        index += 1
        name, equals, value = arg.partition("=")
        if arg == "--":
            for operand in args[index:]:
                yield Text("", lines(process, operand))
            return
        if name in ("-e", "--expression", "-f", "--file"):
            if not equals:
                if index >= len(args):
                    raise UsageError(f"option requires an argument -- '{name.lstrip('-')[0]}'")
                value = args[index]
                index += 1
            yield Text(value) if name in ("-e", "--expression") else Text("", lines(process, value))
        elif arg.startswith("-e") or arg.startswith("-f"):
            yield Text(arg[2:]) if arg[1] == "e" else Text("", lines(process, arg[2:]))
        elif arg in ("-V", "--version"):
            process.print("dc (GNU bc 1.07.1) 1.4.1")
            raise Quit(-1)
        elif arg in ("-h", "--help"):
            process.print(main.help().rstrip())
            raise Quit(-1)
        elif arg == "-":
            yield Text("", calculator.input)
        elif arg.startswith("-"):
            raise UsageError(f"invalid option -- '{arg[1]}'")
        else:
            more = lines(process, arg)
            try:
                first = more()
            except SysError:
                process.warn(f"Could not open file {arg}")
                raise Quit(-1) from None
            yield Text(first, more)
