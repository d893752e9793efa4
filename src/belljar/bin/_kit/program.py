"""A utility's entry point: from argv to its `main`, with help, usage errors and write errors as GNU has them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from belljar.abi.errors import SysError
from belljar.abi.version import __version__
from belljar.bin._kit.locale import is_utf8
from belljar.bin._kit.options import Order, UsageError, describe, parse
from belljar.kernel.process import Process

__all__ = ["Program", "UsageError", "utility"]


@dataclass(frozen=True, slots=True)
class Program:
    """A utility as the kernel runs it. Its help is its module's docstring and its options' texts."""

    name: str
    doc: str
    options: type | None
    run: Callable[[Process, list[str]], int]
    usage_status: int = 1
    named_hint: bool = False

    def __call__(self, process: Process) -> int:
        try:
            status = self.run(process, process.argv[1:])
        except UsageError as error:
            process.warn(_localised(str(error), process))
            if error.hint:
                before = f"{process.called}: " if self.named_hint else ""
                process.error(f"{before}Try '{process.called} --help' for more information.\n")
            return self.usage_status
        except SysError as error:
            process.warn(str(error))
            return self.usage_status
        try:
            process.stdout.flush()
        except SysError as error:
            process.warn(f"write error: {error.reason}")
            return self.usage_status
        return status

    @property
    def summary(self) -> str:
        """One line: what it is for."""
        return self.doc.partition("\n")[0].partition(" - ")[2]

    def help(self) -> str:
        if self.options is None:
            return self.doc.rstrip() + "\n"
        return f"{self.doc.rstrip()}\n\n{describe(self.options)}\n"


def utility(
    name: str,
    options: type | None = None,
    *,
    order: Order = "permute",
    digits: str | None = None,
    usage_status: int = 1,
    doc: str | None = None,
    named_hint: bool = False,
    rewrite: Callable[[list[str]], list[str]] | None = None,
) -> Callable[[Any], Program]:
    """Make a utility of `main(process, options, operands)`; without options, of `main(process, args)`.

    `order="first-operand-ends"` for those that run another command (env, xargs); `digits="lines"` lets `-5` mean
    `-n 5` by setting that field; `usage_status` is the exit code for a wrong command line; `doc` is the help text
    if it is not the docstring of main's module; `named_hint` puts the name before "Try 'diff --help'" too;
    `rewrite` turns obsolete forms that options can't declare (`expand -2,4`) into those they can.
    """

    def wrap(main: FunctionType) -> Program:
        text = doc if doc is not None else str(main.__globals__.get("__doc__") or name)

        def run(process: Process, args: list[str]) -> int:
            if options is None:
                return int(main(process, args))
            parsed = parse(options, rewrite(args) if rewrite else args, order, digits=digits)
            if parsed.asked == "help":
                process.stdout.write(program.help().encode())
                return 0
            if parsed.asked == "version":
                process.print(version(name))
                return 0
            return int(main(process, options(**parsed.values), parsed.operands))

        program = Program(name, text, options, run, usage_status, named_hint)
        return program

    return wrap


def _localised(message: str, process: Process) -> str:
    """Messages are written with curly quotes; a locale without them has straight ones."""
    if is_utf8(process.env):
        return message
    return message.replace("\u2018", "'").replace("\u2019", "'")


def version(name: str) -> str:
    return f"{name} (belljar) {__version__}"
