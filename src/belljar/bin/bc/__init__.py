"""bc - an arbitrary precision calculator language

Usage: bc [-hlqswv] [FILE]...
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode, fsencode
from belljar.bin._kit import flag, utility
from belljar.bin.bc.expressions import BcSyntaxError
from belljar.bin.bc.lexer import Lexer
from belljar.bin.bc.machine import BcError, Machine, Quit
from belljar.bin.bc.parse import RETURN_OUTSIDE, Parser
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    mathlib: bool = flag("-l", "--mathlib", "use the predefined math routines")
    quiet: bool = flag("-q", "--quiet", "don't print initial banner")
    interactive: bool = flag("-i", "--interactive", "force interactive mode")
    standard: bool = flag("-s", "--standard", "non-standard bc constructs are errors")
    warn: bool = flag("-w", "--warn", "warn about non-standard bc constructs")
    usage: bool = flag("-h", "print this usage and exit")
    version: bool = flag("-v", "print version information and exit")


@utility("bc", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if options.usage:
        process.print(_USAGE.format(process.name), end="")
        return 0
    if options.version:
        process.print("bc 1.07.1")
        return 0
    standard_input = lines(process, "-")
    machine = Machine(
        process.budget.charge,
        process.budget.charge_size,
        lambda text: process.stdout.write(fsencode(text)),
        lambda text: _complain(process, text),
        standard_input,
        line_length(process.env),
    )
    if options.mathlib:
        machine.use_math_library()
    try:
        for name in operands:
            try:
                source = lines(process, name)
                run(Parser(Lexer(source, name), machine))
            except SysError:
                _complain(process, f"File {name} is unavailable.\n")
                return 1
        run(Parser(Lexer(standard_input, "(standard_in)"), machine))
    except Quit:
        return 0
    except RecursionError:
        _complain(process, "bc: function calls nested too deeply\n")
        return 1
    return 0


def run(parser: Parser) -> None:
    """Read and run item after item; errors end a line, not the program."""
    machine = parser.machine
    while True:
        try:
            codes = parser.item()
        except BcSyntaxError as error:
            token = parser.token
            line = token.line if token is not None else parser.lexer.line
            if token is not None and token.kind == "newline" and error.message in ("syntax error", RETURN_OUTSIDE):
                line += 1
            machine.warn(f"{parser.lexer.name} {line}: {error.message}\n")
            parser.recover()
            continue
        if codes is None:
            return
        machine.charge(1)
        try:
            for code in codes:
                code()
        except BcError as error:
            where = error.where or "(main)"
            machine.warn(f"Runtime error (func={where}, adr={error.address}): {error.message}\n")
            machine.calls.clear()


def line_length(env: Mapping[str, str]) -> int:
    """Return where long numbers are broken; 0 means nowhere."""
    text = env.get("BC_LINE_LENGTH", "")
    if not text.isdecimal():
        return 70
    return int(text) if int(text) > 2 else 0


def lines(process: Process, name: str) -> Callable[[], str]:
    """A function giving the lines of a file one by one, "" at the end."""
    chunks = process.chunks(name)
    pending: list[str] = []
    tail = b""

    def next_line() -> str:
        nonlocal tail
        while not pending:
            chunk = next(chunks, b"")
            if not chunk:
                last, tail = tail, b""
                return fsdecode(last) + "\n" if last else ""
            whole, newline, rest = (tail + chunk).rpartition(b"\n")
            tail = rest
            process.budget.charge_size(len(tail))
            if newline:
                pending.extend(fsdecode(line) + "\n" for line in reversed(whole.split(b"\n")))
        return pending.pop()

    return next_line


def _complain(process: Process, text: str) -> None:
    process.stdout.flush()
    process.error(text)


_USAGE = """\
usage: {} [options] [file ...]
  -h  --help         print this usage and exit
  -i  --interactive  force interactive mode
  -l  --mathlib      use the predefined math routines
  -q  --quiet        don't print initial banner
  -s  --standard     non-standard bc constructs are errors
  -w  --warn         warn about non-standard bc constructs
  -v  --version      print version information and exit
"""
