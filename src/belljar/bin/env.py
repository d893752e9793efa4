"""env - run a program in a modified environment

Usage: env [OPTION]... [-] [NAME=VALUE]... [COMMAND [ARG]...]

Set each NAME to VALUE in the environment and run COMMAND. With no COMMAND, print the resulting environment.
"""

import re
from collections.abc import Callable, Mapping

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.signals import UNCATCHABLE, Signal, parse_signal
from belljar.bin._kit import UsageError, flag, many, value
from belljar.bin._kit.options import parse
from belljar.bin._kit.program import utility, version
from belljar.bin._kit.quoting import quote
from belljar.kernel.loader import search_path
from belljar.kernel.process import IGNORE, Process


@dataclass(frozen=True, slots=True)
class Options:
    ignore: bool = flag("-i", "--ignore-environment", "start with an empty environment")
    null: bool = flag("-0", "--null", "end each output line with NUL, not newline")
    unset: tuple[str, ...] = many("-u", "--unset", "remove variable from the environment", metavar="NAME")
    argv0: str | None = value("-a", "--argv0", "pass ARG as the zeroth argument of COMMAND", metavar="ARG")
    chdir: str | None = value("-C", "--chdir", "change working directory to DIR", metavar="DIR")
    split: str | None = value("-S", "--split-string", "process and split S into separate arguments", metavar="S")
    block: tuple[str, ...] = many("--block-signal", "block delivery of SIG", metavar="SIG", bare="")
    default: tuple[str, ...] = many("--default-signal", "reset handling of SIG to the default", metavar="SIG", bare="")
    ignored: tuple[str, ...] = many("--ignore-signal", "set handling of SIG to do nothing", metavar="SIG", bare="")
    listing: bool = flag("--list-signal-handling", "list signals that are not handled by default")
    debug: bool = flag("-v", "--debug", "print verbose information for each processing step")


@utility("env", usage_status=125)
def main(process: Process, args: list[str]) -> int:
    parsed = parse(Options, expand_split(process, args), "first-operand-ends")
    if parsed.asked:
        process.print(main.help().rstrip() if parsed.asked == "help" else version("env"))
        return 0
    options, operands = Options(**parsed.values), parsed.operands
    ignore = options.ignore
    if operands and operands[0] == "-":
        ignore = True
        operands = operands[1:]
    environment = {} if ignore else dict(process.env)
    for name in options.unset:
        if not name or "=" in name:
            raise UsageError(f"cannot unset {quote(name, process.env)}: Invalid argument", hint=False)
        environment.pop(name, None)
    while operands and "=" in operands[0]:
        name, _, text = operands[0].partition("=")
        environment[name] = text
        if options.debug:
            process.error(f"setenv:   {operands[0]}\n")
        operands = operands[1:]
    if not operands:
        if options.chdir is not None:
            raise UsageError("must specify command with --chdir (-C)")
        for name, text in environment.items():
            process.print(f"{name}={text}", end="\0" if options.null else "\n")
        return 0
    if options.null:
        raise UsageError("cannot specify --null (-0) with command")
    if options.chdir is not None:
        try:
            process.fs.chdir(options.chdir)
        except SysError as error:
            raise UsageError(f"cannot change directory to '{options.chdir}': {error.reason}", hint=False) from None
    set_signals(process, options)
    if options.debug:
        process.error(f"executing: {operands[0]}\n")
        for place, word in enumerate(operands):
            process.error(f"   arg[{place}]= {quote(word, process.env)}\n")
    return become(process, operands, environment, argv0=options.argv0)


def set_signals(process: Process, options: Options) -> None:
    """Block, ignore and reset the signals that the options name."""
    for number in _signals(process, options.default):
        process.catch(number, None)
    for number in _signals(process, options.ignored):
        process.catch(number, IGNORE)
    blocked = frozenset(_signals(process, options.block))
    if blocked:
        process.block(blocked)
    if options.listing:
        for signal in Signal:
            words = ["BLOCK"] * (signal in blocked) + ["IGNORE"] * (process.handlers.get(signal) is IGNORE)
            if words:
                process.error(f"{signal.name:<10} ({int(signal):2d}): {','.join(words)}\n")


def _signals(process: Process, texts: tuple[str, ...]) -> list[int]:
    """The signals of lists of names and numbers; an empty list is all that can be caught."""
    found: list[int] = []
    for text in texts:
        if not text:
            found += [signal for signal in Signal if signal not in UNCATCHABLE]
        for name in text.split(",") if text else ():
            number = parse_signal(name)
            if number is None:
                raise UsageError(f"{quote(name, process.env)}: invalid signal")
            if number in UNCATCHABLE:
                raise UsageError(f"failed to set signal action for signal {number}: Invalid argument", hint=False)
            found.append(number)
    return found


def become(
    process: Process,
    argv: list[str],
    environment: Mapping[str, str],
    failing: Callable[[str, Mapping[str, str]], str] | None = None,
    argv0: str | None = None,
) -> int:
    """Run a command in our place; 127 or 126 with the reason if it can't be."""
    try:
        path = search_path(process, argv[0], environment.get("PATH"))
        process.execute(path, argv if argv0 is None else [argv0, *argv[1:]], environment)
    except SysError as error:
        what = (failing or quote)(argv[0], process.env)
        process.warn(f"{what}: {error.reason}")
        if " " in argv[0] and error.name == "ENOENT" and process.name == "env":
            process.error(f"{process.name}: use -[v]S to pass options in shebang lines\n")
        return 127 if error.name in ("ENOENT", "ENOTDIR") else 126


_ESCAPES = {"f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "#": "#", "$": "$", '"': '"', "'": "'", "\\": "\\"}


def expand_split(process: Process, args: list[str]) -> list[str]:
    """Replace the first -S (also bundled: -vS, -iS) by the words its string splits into."""
    for index, arg in enumerate(args):
        if arg == "--" or not arg.startswith("-") or arg == "-":
            break
        if arg.startswith("--"):
            if arg.startswith("--s") and "--split-string".startswith(arg.partition("=")[0]):
                attached = arg.partition("=")[1]
                text, used = (
                    (arg.partition("=")[2], 1) if attached else (args[index + 1] if index + 1 < len(args) else None, 2)
                )
                return _replace(process, args, index, used, [], text, "--split-string")
            if arg in ("--unset", "--chdir"):
                return [*args[: index + 2], *expand_split(process, args[index + 2 :])]
            continue
        match = re.match(r"-([i0v]*)S(.*)", arg, re.S)
        if match:
            flags = ["-" + match[1]] if match[1] else []
            text, used = (match[2], 1) if match[2] else (args[index + 1] if index + 1 < len(args) else None, 2)
            return _replace(process, args, index, used, flags, text, "S")
        if re.fullmatch(r"-[i0v]*[uC]", arg):
            return [*args[: index + 2], *expand_split(process, args[index + 2 :])]
    return args


def _replace(
    process: Process, args: list[str], index: int, used: int, flags: list[str], text: str | None, option: str
) -> list[str]:
    if text is None:
        what = (
            f"option '{option}' requires an argument"
            if option.startswith("--")
            else f"option requires an argument -- '{option}'"
        )
        raise UsageError(what)
    words = split_words(process, text)
    return expand_split(process, [*args[:index], *flags, *words, *args[index + used :]])


def split_words(process: Process, text: str) -> list[str]:
    """GNU's rules for -S: quotes, escapes, ${VAR} and comments, but nothing else of a shell."""
    words: list[str] = []
    word: list[str] | None = None
    quote = ""
    index = 0
    while index < len(text):
        char = text[index]
        index += 1
        if quote == "'":
            if char == "'":
                quote = ""
            elif char == "\\" and text[index : index + 1] in ("\\", "'"):
                word = [*(word or []), text[index]]
                index += 1
            else:
                word = [*(word or []), char]
            continue
        if char == "\\":
            code = text[index : index + 1]
            index += 1
            if not code:
                raise UsageError("invalid backslash at end of string in -S", hint=False)
            if code == "c":
                if quote:
                    raise UsageError("'\\c' must not appear in double-quoted -S string", hint=False)
                break
            if code == "_":
                if quote:
                    word = [*(word or []), " "]
                elif word is not None:
                    words.append("".join(word))
                    word = None
                continue
            if code not in _ESCAPES:
                raise UsageError(f"invalid sequence '\\{code}' in -S", hint=False)
            word = [*(word or []), _ESCAPES[code]]
        elif char == "$":
            match = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}").match(text, index)
            if match is None:
                rest = text[index - 1 :]
                raise UsageError(f"only ${{VARNAME}} expansion is supported, error at: {rest}", hint=False)
            index = match.end()
            if match[1] in process.env:
                word = [*(word or []), process.env[match[1]]]
        elif char == '"':
            quote = "" if quote else '"'
            word = word or []
        elif quote:
            word = [*(word or []), char]
        elif char == "'":
            quote = "'"
            word = word or []
        elif char in " \t\n\r\f\v":
            if word is not None:
                words.append("".join(word))
                word = None
        elif char == "#" and word is None:
            break
        else:
            word = [*(word or []), char]
    if quote:
        raise UsageError("no terminating quote in -S string", hint=False)
    if word is not None:
        words.append("".join(word))
    return words
