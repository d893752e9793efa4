"""A utility's entry point: from argv to its `main`, with help, usage errors and write errors as GNU has them."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, Final

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import OutputError, SysError
from belljar.abi.version import __version__
from belljar.bin._kit.locale import is_utf8
from belljar.bin._kit.models import model_of
from belljar.bin._kit.options import Order, Parsed, UsageError, describe, parse
from belljar.bin._kit.quoting import quote_if_odd
from belljar.kernel.process import Process

__all__ = ["Program", "UsageError", "utility"]

_REMEMBERED: Final = 32
_REMEMBERED_SIZE: Final = 200
"""Characters; longer command lines aren't remembered."""


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
        process.stdout.guarded = True
        try:
            return self._run(process)
        except OutputError as error:
            process.error(f"{process.called}: write error: {error.reason}\n")
            return self.usage_status

    def _run(self, process: Process) -> int:
        try:
            status = self.run(process, process.argv[1:])
            process.stdout.flush()
        except UsageError as error:
            process.warn(_localised(str(error), process))
            if error.hint:
                before = f"{process.called}: " if self.named_hint else ""
                process.error(f"{before}Try '{process.called} --help' for more information.\n")
            return self.usage_status
        except SysError as error:
            process.warn(error.reason if error.path is None else f"{quote_if_odd(error.path)}: {error.reason}")
            return self.usage_status
        return status

    @property
    def summary(self) -> str:
        """One line: what it is for."""
        return self.doc.partition("\n")[0].partition(" - ")[2]

    def help(self) -> str:
        """The usage lines first, as GNU has them; then the purpose, the rest of the text and the options."""
        title, _, body = self.doc.strip().partition("\n\n")
        usage, _, rest = body.partition("\n\n")
        if not usage.startswith("Usage:"):
            usage, rest = f"Usage: {self.name} [OPTION]... [ARGUMENT]...", body
        summary = title.partition(" - ")[2] or title
        parts = [f"{usage}\n{summary[:1].upper()}{summary[1:]}.", rest.rstrip()]
        if self.options is not None:
            parts.append(describe(self.options))
        return "\n\n".join(part for part in parts if part) + "\n"


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
        lines = _CommandLines(options, order, digits) if options is not None else None

        def run(process: Process, args: list[str]) -> int:
            if lines is None:
                return int(main(process, args))
            parsed = lines.read(rewrite(args) if rewrite else args)
            if isinstance(parsed, Parsed):
                if parsed.asked == "help":
                    process.stdout.write(program.help().encode())
                else:
                    process.print(version(name))
                return 0
            given, operands = parsed
            return int(main(process, given, list(operands)))

        program = Program(name, text, options, run, usage_status, named_hint)
        return program

    return wrap


class _CommandLines:
    """Reads a utility's command lines, and remembers the last ones: in a loop most are the same."""

    __slots__ = ("_digits", "_options", "_order", "_plain", "_read", "_shared")

    def __init__(self, options: type, order: Order, digits: str | None) -> None:
        self._options = options
        self._order = order
        self._digits = digits
        self._shared: bool = options.__struct_config__.frozen  # type: ignore[attr-defined]
        self._plain: object = None
        self._read: dict[tuple[str, ...], tuple[object, list[str]]] = {}

    def read(self, args: list[str]) -> tuple[object, list[str]] | Parsed:
        """The options given and the operands, or the request for help or version. Raises UsageError."""
        if not self._shared:
            return self._parse(args)
        for arg in args:
            if arg[:1] == "-":
                break
        else:
            if self._plain is None:
                self._plain = self._options()
            return self._plain, args
        key = tuple(args)
        found = self._read.get(key)
        if found is not None:
            return found
        parsed = self._parse(args)
        if isinstance(parsed, tuple) and sum(map(len, args)) <= _REMEMBERED_SIZE:
            if len(self._read) >= _REMEMBERED:
                self._read.clear()
            self._read[key] = parsed
        return parsed

    def _parse(self, args: list[str]) -> tuple[object, list[str]] | Parsed:
        parsed = parse(self._options, args, self._order, digits=self._digits)
        return parsed if parsed.asked else (self._options(**parsed.values), parsed.operands)


def _localised(message: str, process: Process) -> str:
    """Messages are written with curly quotes; a locale without them has straight ones."""
    if is_utf8(process.env):
        return message
    return message.replace("\u2018", "'").replace("\u2019", "'")


def version(name: str) -> str:
    """Return the text of --version: first that of the program this one behaves as, then our own."""
    model = model_of(name)
    return f"{model}\nbelljar {__version__}" if model else f"{name} (belljar) {__version__}"
