"""awk's command line: what the options say, before anything runs."""

from __future__ import annotations

from belljar.abi.dataclass import dataclass, field

_WITH_VALUE = {
    "F": "field-separator",
    "v": "assign",
    "f": "file",
    "e": "source",
    "i": "include",
    "E": "exec",
    "l": "load",
}
_PLAIN = {
    "b": "characters-as-bytes",
    "c": "traditional",
    "C": "copyright",
    "g": "gen-pot",
    "h": "help",
    "I": "trace",
    "k": "csv",
    "M": "bignum",
    "N": "use-lc-numeric",
    "n": "non-decimal-data",
    "O": "optimize",
    "P": "posix",
    "r": "re-interval",
    "s": "no-optimize",
    "S": "sandbox",
    "t": "lint-old",
    "V": "version",
}
_OPTIONAL = {"d": "dump-variables", "D": "debug", "L": "lint", "o": "pretty-print", "p": "profile"}


class Usage(Exception):
    """The command line is wrong; the text goes to standard error before the usage."""


@dataclass(slots=True)
class CommandLine:
    """The options given. `sources` are ("text", program) and ("file", name) in order."""

    sources: list[tuple[str, str]] = field(default_factory=list)
    assignments: list[str] = field(default_factory=list)
    operands: list[str] = field(default_factory=list)
    separator: str | None = None
    flags: set[str] = field(default_factory=set)


def parse_command(args: list[str], program: str) -> CommandLine:
    """Read the options; what is left are the program text (unless -f or -e gave one) and the operands."""
    command = CommandLine()
    index = 0
    ended = False
    while index < len(args) and not ended:
        arg = args[index]
        if arg == "--" or arg == "-" or not arg.startswith("-"):
            index += arg == "--"
            break
        index += 1
        if arg.startswith("--"):
            index = _long(command, arg[2:], args, index, program)
        else:
            index, ended = _short(command, arg, args, index, program)
    rest = args[index:]
    if not any(kind in ("text", "file") for kind, _ in command.sources) and not command.flags & {"help", "version"}:
        if not rest:
            raise Usage("")
        command.sources.append(("text", rest.pop(0)))
    command.operands = rest
    return command


def _long(command: CommandLine, text: str, args: list[str], index: int, program: str) -> int:
    name, equals, value = text.partition("=")
    known = [*_WITH_VALUE.values(), *_PLAIN.values(), *_OPTIONAL.values()]
    matches = [name] if name in known else [full for full in known if full.startswith(name)]
    if len(matches) != 1:
        raise Usage(
            f"{program}: unrecognized option '--{name}'\n"
            if not matches
            else f"{program}: option '--{name}' is ambiguous\n"
        )
    full = matches[0]
    if full in _WITH_VALUE.values():
        if not equals:
            if index >= len(args):
                raise Usage(f"{program}: option '--{full}' requires an argument\n")
            value = args[index]
            index += 1
        _apply(command, full, value)
    else:
        command.flags.add(full)
    return index


def _short(command: CommandLine, arg: str, args: list[str], index: int, program: str) -> tuple[int, bool]:
    """Give the next index, and whether the options end here (-E)."""
    position = 1
    while position < len(arg):
        letter = arg[position]
        position += 1
        if letter in _PLAIN:
            command.flags.add(_PLAIN[letter])
        elif letter in _OPTIONAL:
            command.flags.add(_OPTIONAL[letter])
            break
        elif letter in _WITH_VALUE or letter == "W":
            value = arg[position:]
            if not value:
                if index >= len(args):
                    raise Usage(f"{program}: option requires an argument -- {letter}\n")
                value = args[index]
                index += 1
            if letter == "W":
                return _long(command, value, args, index, program), False
            _apply(command, _WITH_VALUE[letter], value)
            return index, letter == "E"
        else:
            raise Usage(f"{program}: invalid option -- '{letter}'\n")
    return index, False


def _apply(command: CommandLine, option: str, value: str) -> None:
    match option:
        case "field-separator":
            command.separator = value
        case "assign":
            command.assignments.append(value)
        case "file" | "exec":
            command.sources.append(("file", value))
        case "source":
            command.sources.append(("text", value))
        case "include":
            command.sources.append(("include", value))
        case "load":
            command.sources.append(("load", value))


USAGE = """\
Usage: {0} [POSIX or GNU style options] -f progfile [--] file ...
Usage: {0} [POSIX or GNU style options] [--] 'program' file ...
POSIX options:		GNU long options: (standard)
	-f progfile		--file=progfile
	-F fs			--field-separator=fs
	-v var=val		--assign=var=val
Short options:		GNU long options: (extensions)
	-b			--characters-as-bytes
	-c			--traditional
	-e 'program-text'	--source='program-text'
	-E file			--exec=file
	-h			--help
	-i includefile		--include=includefile
	-k			--csv
	-n			--non-decimal-data
	-P			--posix
	-r			--re-interval
	-S			--sandbox
	-V			--version
"""
