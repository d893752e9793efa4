"""getopt - parse command options

Usage: getopt OPTSTRING PARAMETERS
       getopt [OPTION]... [--] OPTSTRING PARAMETERS
       getopt [OPTION]... -o OPTSTRING [OPTION]... [--] PARAMETERS
"""

import re

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import UsageError, flag, many, value
from belljar.bin._kit.options import parse
from belljar.bin._kit.program import utility, version
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    alternative: bool = flag("-a", "--alternative", "allow long options starting with single -")
    longoptions: tuple[str, ...] = many("-l", "--longoptions", "the long options to be recognized", metavar="LONGOPTS")
    name: str = value("-n", "--name", "the name under which errors are reported", metavar="PROGNAME", default="getopt")
    options: str | None = value("-o", "--options", "the short options to be recognized", metavar="OPTSTRING")
    quiet: bool = flag("-q", "--quiet", "disable error reporting by getopt(3)")
    quiet_output: bool = flag("-Q", "--quiet-output", "no normal output")
    shell: str = value("-s", "--shell", "set quoting conventions to those of SHELL", metavar="SHELL", default="bash")
    test: bool = flag("-T", "--test", "test for getopt(1) version")
    unquoted: bool = flag("-u", "--unquoted", "do not quote the output")


@utility("getopt", usage_status=2)
def main(process: Process, args: list[str]) -> int:
    if args and not args[0].startswith("-"):
        # The traditional form: nothing is quoted.
        return Scan(process, args[0], (), Options(unquoted=True)).run(args[1:])
    parsed = parse(Options, args, "first-operand-ends")
    if parsed.asked:
        process.print(main.help().rstrip() if parsed.asked == "help" else version("getopt"))
        return 0
    options, operands = Options(**parsed.values), parsed.operands
    if options.test:
        return 4
    short = options.options
    if short is None:
        if not operands:
            raise UsageError("missing optstring argument")
        short, *operands = operands
    names = tuple(name for text in options.longoptions for name in re.split(r"[,\s]+", text) if name)
    return Scan(process, short, names, options).run(operands)


class Scan:
    def __init__(self, process: Process, short: str, long: tuple[str, ...], options: Options) -> None:
        self._process = process
        self._options = options
        self._mode = short[:1] if short[:1] in ("+", "-") else ""
        self._short = {m[1]: len(m[2]) for m in re.finditer(r"([^:+-]|(?<!^)[+-])(:{0,2})", short.lstrip("+-"))}
        self._long = {name.rstrip(":"): len(name) - len(name.rstrip(":")) for name in long}
        self._out: list[str] = []
        self._failed = False

    def run(self, args: list[str]) -> int:
        operands: list[str] = []
        queue = list(args)
        while queue:
            arg = queue.pop(0)
            if arg == "--":
                operands += queue
                break
            if arg.startswith("--") or (
                self._options.alternative and re.match(r"-[^-]", arg) and self._matches(arg[1:])
            ):
                self._take_long(arg, queue)
            elif arg.startswith("-") and arg != "-":
                self._take_short(arg[1:], queue)
            elif self._mode == "-":
                self._out.append(self._quote(arg))
            else:
                operands.append(arg)
                if self._mode == "+" or "POSIXLY_CORRECT" in self._process.env:
                    operands += queue
                    break
        if not self._options.quiet_output:
            words = [*self._out, "--", *map(self._quote, operands)]
            self._process.print(" " + " ".join(words))
        return 1 if self._failed else 0

    def _complain(self, message: str) -> None:
        self._failed = True
        if not self._options.quiet:
            self._process.error(f"{self._options.name}: {message}\n")

    def _quote(self, text: str) -> str:
        if self._options.unquoted:
            return text
        text = text.replace("'", "'\\''")
        if self._options.shell in ("csh", "tcsh"):
            for char in " \t!":
                text = text.replace(char, f"'\\{char}'")
            text = text.replace("\n", "'\\n'")
        return f"'{text}'"

    def _matches(self, text: str) -> list[str]:
        name = text.partition("=")[0]
        return [name] if name in self._long else [full for full in self._long if full.startswith(name)]

    def _take_long(self, arg: str, queue: list[str]) -> None:
        name, equals, text = arg.lstrip("-").partition("=")
        found = self._matches(name)
        if not found:
            self._complain(f"unrecognized option '--{name}'")
            return
        if len(found) > 1:
            self._complain(
                f"option '--{name}' is ambiguous; possibilities:{''.join(f' {chr(39)}--{f}{chr(39)}' for f in found)}"
            )
            return
        wants = self._long[found[0]]
        self._out.append(f"--{found[0]}")
        if wants == 0:
            if equals:
                self._out.pop()
                self._complain(f"option '--{found[0]}' doesn't allow an argument")
        elif equals or wants == 2:
            self._out.append(self._quote(text))
        elif queue:
            self._out.append(self._quote(queue.pop(0)))
        else:
            self._out.pop()
            self._complain(f"option '--{found[0]}' requires an argument")

    def _take_short(self, letters: str, queue: list[str]) -> None:
        while letters:
            letter, letters = letters[0], letters[1:]
            if letter not in self._short:
                self._complain(f"invalid option -- '{letter}'")
                continue
            wants = self._short[letter]
            if wants == 0:
                self._out.append(f"-{letter}")
                continue
            if not letters and wants == 1 and not queue:
                self._complain(f"option requires an argument -- '{letter}'")
                return
            text = letters or ("" if wants == 2 else queue.pop(0))
            self._out += [f"-{letter}", self._quote(text)]
            return
