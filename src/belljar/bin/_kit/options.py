"""GNU-style options declared as the fields of a dataclass, and the parser for them.

Short and long, bundled (`-la`), abbreviated (`--line` for `--lines`), with values attached or apart, `--`, and
operands in between unless the utility says that the first operand ends the options.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Any, Literal, TypeVar

from belljar.abi.dataclass import dataclass, field, fields

T = TypeVar("T")


class UsageError(Exception):
    """The command line is wrong; the text is what getopt would print after the utility's name.

    `hint` says whether "Try 'x --help' for more information." follows.
    """

    def __init__(self, message: str, *, hint: bool = True) -> None:
        super().__init__(message)
        self.hint = hint


class Kind(Enum):
    FLAG = "flag"
    VALUE = "value"
    MANY = "many"
    COUNT = "count"
    CHOICE = "choice"


@dataclass(frozen=True, slots=True)
class Spec:
    """One declared option."""

    kind: Kind
    names: tuple[str, ...]
    help: str
    metavar: str = ""
    bare: str | None = None
    """For an optional value (`--color[=WHEN]`): what the option alone means."""
    choices: tuple[tuple[str, Any], ...] = ()
    """For a choice: what each of the names sets the field to. For many: names that stand for a value."""
    resets: tuple[str, ...] = ()
    """Fields that go back to their defaults: of `-c` and `-n` only the last one given counts."""

    def takes_value(self, name: str) -> bool:
        return self.kind in (Kind.VALUE, Kind.MANY) and name not in dict(self.choices)


def flag(*names_and_help: str) -> Any:
    """`flag("-l", "--lines", "print the newline counts")`: False unless given."""
    return field(default=False, metadata={"spec": Spec(Kind.FLAG, names_and_help[:-1], names_and_help[-1])})


def count(*names_and_help: str) -> Any:
    """Return how many times the option was given."""
    return field(default=0, metadata={"spec": Spec(Kind.COUNT, names_and_help[:-1], names_and_help[-1])})


def value(
    *names_and_help: str,
    metavar: str = "VALUE",
    default: str | None = None,
    bare: str | None = None,
    resets: tuple[str, ...] = (),
) -> Any:
    """An option with a value; the last one given wins. With `bare`, the value is optional and must be attached.

    `resets` names other fields that this one takes back.
    """
    spec = Spec(Kind.VALUE, names_and_help[:-1], names_and_help[-1], metavar, bare, resets=resets)
    return field(default=default, metadata={"spec": spec})


def many(
    *names_and_help: str,
    metavar: str = "VALUE",
    constants: Mapping[str, str] | None = None,
    bare: str | None = None,
) -> Any:
    """An option that may be given again and again: a tuple of its values, in order. `bare` as of `value`.

    `constants` are flags that stand for one of its values: od's `-x` is `-t x2`.
    """
    fixed = tuple((constants or {}).items())
    names = (*names_and_help[:-1], *(name for name, _ in fixed))
    spec = Spec(Kind.MANY, names, names_and_help[-1], metavar, bare, choices=fixed)
    return field(default=(), metadata={"spec": spec})


def choice(meanings: Mapping[str, Any], help: str, default: Any = None) -> Any:
    """Options that override one another: `choice({"-L": "all", "-P": "none"}, "...")`; the last one given wins."""
    spec = Spec(Kind.CHOICE, tuple(meanings), help, choices=tuple(meanings.items()))
    return field(default=default, metadata={"spec": spec})


@dataclass(frozen=True, slots=True)
class Table:
    """The options of one dataclass, ready to parse with."""

    short: dict[str, tuple[str, Spec]]
    long: dict[str, tuple[str, Spec]]


@cache
def table(options: type) -> Table:
    short: dict[str, tuple[str, Spec]] = {}
    long: dict[str, tuple[str, Spec]] = {"--help": ("help", _HELP), "--version": ("version", _VERSION)}
    for item in fields(options):
        spec: Spec = item.metadata["spec"]
        for name in spec.names:
            (long if name.startswith("--") else short)[name] = (item.name, spec)
    return Table(short, long)


_HELP = Spec(Kind.FLAG, ("--help",), "display this help and exit")
_VERSION = Spec(Kind.FLAG, ("--version",), "output version information and exit")

Order = Literal["permute", "first-operand-ends"]


@dataclass(slots=True)
class Parsed:
    """A parsed command line: field values, operands, and whether help or version was asked for."""

    values: dict[str, Any]
    operands: list[str]
    asked: Literal["", "help", "version"] = ""


def parse(options: type, args: list[str], order: Order = "permute", *, digits: str | None = None) -> Parsed:
    """Parse `args` for a dataclass of options. With `digits`, `-12` means that option with the value 12.

    Raises UsageError with getopt's words.
    """
    parser = _Parser(table(options), Parsed({}, []), digits)
    index = 0
    while index < len(args):
        arg = args[index]
        index += 1
        if arg == "--":
            parser.parsed.operands += args[index:]
            break
        if arg.startswith("--"):
            index = parser.long(arg, args, index)
        elif arg.startswith("-") and arg != "-":
            index = parser.short(arg, args, index)
        else:
            parser.parsed.operands.append(arg)
            if order == "first-operand-ends":
                parser.parsed.operands += args[index:]
                break
        if parser.parsed.asked:
            break
    return parser.parsed


def read_options(options: type[T], args: list[str], order: Order = "permute") -> tuple[T, list[str]]:
    """Parse `args` for a dataclass of options: the options and the operands. Raises UsageError."""
    parsed = parse(options, args, order)
    return options(**parsed.values), parsed.operands


class _Parser:
    def __init__(self, table: Table, parsed: Parsed, digits: str | None) -> None:
        self.table = table
        self.parsed = parsed
        self.digits = digits

    def long(self, arg: str, args: list[str], index: int) -> int:
        name, equals, attached = arg.partition("=")
        name = self._complete(name, arg)
        key, spec = self.table.long[name]
        if key in ("help", "version") and spec in (_HELP, _VERSION):
            if equals:
                raise UsageError(f"option '{name}' doesn't allow an argument")
            self.parsed.asked = "help" if key == "help" else "version"
            return index
        if not spec.takes_value(name):
            if equals:
                raise UsageError(f"option '{name}' doesn't allow an argument")
            self._set(key, spec, name, "")
        elif equals:
            self._set(key, spec, name, attached)
        elif spec.bare is not None:
            self._set(key, spec, name, spec.bare)
        elif index < len(args):
            self._set(key, spec, name, args[index])
            index += 1
        else:
            raise UsageError(f"option '{name}' requires an argument")
        return index

    def _complete(self, name: str, arg: str) -> str:
        """The full name of a long option that may be abbreviated; messages show all of the argument."""
        known = self.table.long
        if name in known:
            return name
        matches = [full for full in known if full.startswith(name)]
        if not matches:
            raise UsageError(f"unrecognized option '{arg}'")
        if len({known[full] for full in matches}) > 1:
            listed = "".join(f" '{full}'" for full in matches)
            raise UsageError(f"option '{arg}' is ambiguous; possibilities:{listed}")
        return matches[0]

    def short(self, arg: str, args: list[str], index: int) -> int:
        position = 1
        while position < len(arg):
            if self.digits is not None and arg[position].isdecimal() and f"-{arg[position]}" not in self.table.short:
                end = position
                while end < len(arg) and arg[end].isdecimal():
                    end += 1
                self.parsed.values[self.digits] = arg[position:end]
                position = end
                continue
            name = "-" + arg[position]
            position += 1
            if name not in self.table.short:
                raise UsageError(f"invalid option -- '{name[1]}'")
            key, spec = self.table.short[name]
            if not spec.takes_value(name):
                self._set(key, spec, name, "")
                continue
            if position < len(arg):
                self._set(key, spec, name, arg[position:])
            elif spec.bare is not None:
                self._set(key, spec, name, spec.bare)
            elif index < len(args):
                self._set(key, spec, name, args[index])
                index += 1
            else:
                raise UsageError(f"option requires an argument -- '{name[1]}'")
            break
        return index

    def _set(self, key: str, spec: Spec, name: str, text: str) -> None:
        values = self.parsed.values
        for other in spec.resets:
            values.pop(other, None)
        match spec.kind:
            case Kind.FLAG:
                values[key] = True
            case Kind.COUNT:
                values[key] = values.get(key, 0) + 1
            case Kind.VALUE:
                values[key] = text
            case Kind.MANY:
                values[key] = (*values.get(key, ()), dict(spec.choices).get(name, text))
            case Kind.CHOICE:
                values[key] = dict(spec.choices)[name]


def describe(options: type) -> str:
    """The option lines of a help text."""
    lines: list[str] = []
    for item in fields(options):
        spec: Spec = item.metadata["spec"]
        short = [n for n in spec.names if not n.startswith("--")]
        long = [n for n in spec.names if n.startswith("--")]
        if spec.metavar and long:
            suffix = f"[={spec.metavar}]" if spec.bare is not None else f"={spec.metavar}"
            long = [n + suffix for n in long]
        elif spec.metavar and short:
            short = [f"{n} {spec.metavar}" if spec.bare is None else f"{n}[{spec.metavar}]" for n in short]
        left = ("  " if short else "      ") + ", ".join(short + long)
        if len(left) > 27:
            lines += [left, " " * 29 + spec.help]
        else:
            lines.append(f"{left:<29}{spec.help}")
    lines += [f"{'      --help':<29}{_HELP.help}", f"{'      --version':<29}{_VERSION.help}"]
    return "\n".join(lines)
