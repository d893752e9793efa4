"""echo and printf."""

from __future__ import annotations

from typing import TYPE_CHECKING

from belljar.abi.paths import byte_length, fsdecode
from belljar.libc.calendar import EARLIEST, LATEST
from belljar.libc.printf import Printf
from belljar.libc.printf_format import Mistake
from belljar.libc.quote import for_printf
from belljar.libc.strftime import strftime
from belljar.libc.zones import localtime, parse_zone
from belljar.shell import echo as echoing
from belljar.shell.builtins.registry import Usage, builtin, parse_options
from belljar.shell.control import ReadonlyError
from belljar.shell.variables import is_name

if TYPE_CHECKING:
    from belljar.shell.shell import Shell


@builtin("echo")
def echo(shell: Shell, args: list[str]) -> int:
    """echo [-neE] [arg ...]
    Write the arguments, separated by spaces, and a newline.

    Options:
      -n  no newline
      -e  interpret backslash escapes
      -E  don't
    """
    if len(args) == 1 and args[0][:1] != "-":
        text = args[0]
        if not shell.shopts["xpg_echo"]:
            shell.write(text + "\n")
            return 0
    xpg = shell.shopts["xpg_echo"]
    data = echoing.render(args, escapes=xpg, options=not (xpg and shell.posix))
    shell.process.write_all(1, data)
    return 0


class BashDialect:
    """printf as a builtin: bash's conversions and messages."""

    letters = "diouxXeEfFgGaAcsbqQTn"
    stops = False

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self.running: Printf | None = None
        """The output whose complete lines are written before a message, as stdout is line-buffered."""

    def _complain(self, message: str) -> None:
        if self.running is not None and (lines := self.running.take_lines()):
            self._shell.process.write_all(1, lines)
        self._shell.error(message)

    def invalid(self, arg: str, _used: int) -> int:
        if not arg:
            return 0
        kind = "number"
        if arg[0] == "0" and arg[1:2].isdecimal():
            kind = "octal number"
        elif arg[:2] in ("0x", "0X"):
            kind = "hex number"
        self._complain(f"printf: {arg}: invalid {kind}")
        return 1

    def out_of_range(self, arg: str) -> int:
        self._complain(f"printf: warning: {arg}: Numerical result out of range")
        return 0

    def mistake(self, mistake: Mistake) -> int:
        if mistake.letter and mistake.letter not in "hjlLtz":
            self._complain(f"printf: `{mistake.letter}': invalid format character")
        else:
            self._complain(f"printf: `{mistake.text}': missing format character")
        return 1

    def missing_digits(self, letter: str) -> int:
        what = "hex digit for \\x" if letter == "x" else f"unicode digit for \\{letter}"
        self._complain(f"printf: missing {what}")
        return 0

    def bad_time(self, letter: str) -> None:
        self._complain(f"printf: warning: `{letter}': invalid time format specification")

    def after_character(self, rest: str) -> None:
        """Bash has no message for them."""

    def quote(self, text: str) -> str:
        return for_printf(text)

    def time(self, template: str, seconds: int) -> str:
        kernel = self._shell.process.kernel
        if seconds == -1:
            seconds = kernel.now() // 1_000_000_000
        elif seconds == -2:
            age = kernel.hub.clock.monotonic() - self._shell.process.start
            seconds = kernel.now() // 1_000_000_000 - int(age)
        # The C library reads the environment, so only an exported TZ counts; and bash's buffer has 128 bytes.
        zone = parse_zone(self._shell.vars.exported().get("TZ") or "UTC0")
        text = strftime(template, localtime(seconds if EARLIEST <= seconds <= LATEST else 0, zone))
        return text if byte_length(text) < 128 else ""

    def store_count(self, name: str, count: int) -> None:
        self._shell.assign(name, str(count))


@builtin("printf")
def printf(shell: Shell, args: list[str]) -> int:
    """printf [-v var] format [arguments]
    Write the arguments as the format says; with -v, into a variable.

    The format is used again while arguments are left. Beyond printf(3) it knows %b (escapes in the argument), %q
    (quoted for the shell), %Q (as %q, precision first) and %(FORMAT)T (strftime; -1 is now, -2 the shell's start).
    """
    target: str | None = None
    if args and args[0][:1] == "-":
        if args[0] == "-v" and len(args) > 2 and args[2][:1] != "-":
            target, args = args[1], args[2:]
        else:
            options, args = parse_options(args, "v:")
            target = options.get("v")
    if target is not None and not is_name(target) and shell.split_element(target) is None:
        shell.error(f"printf: `{target}': not a valid identifier")
        return 2
    if not args:
        raise Usage
    dialect = BashDialect(shell)
    run = Printf(dialect, args[1:], shell.process.budget)
    if target is None:
        dialect.running = run
    data, status = run.run(args[0])
    if target is not None:
        try:
            shell.assign(target, fsdecode(data.partition(b"\0")[0]))
        except ReadonlyError as error:
            shell.error(str(error))
            return 1
    elif data:
        shell.process.write_all(1, data)
    return status
