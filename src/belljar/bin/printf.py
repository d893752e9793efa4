r"""printf - format and print data

Usage: printf FORMAT [ARGUMENT]...

Print the ARGUMENTs as FORMAT says, using it again while there are more.

  \" \\ \a \b \c \e \f \n \r \t \v \NNN \xHH \uHHHH \UHHHHHHHH  escapes in FORMAT
  %%  a single %
  %b  ARGUMENT with its escapes interpreted (octal as \0NNN)
  %q  ARGUMENT quoted for reuse as shell input
  and the conversions of C: diouxXfeEgGaAcs
"""

from belljar.bin._kit import UsageError, utility
from belljar.bin._kit.program import version
from belljar.bin._kit.quoting import quote
from belljar.kernel.process import Process
from belljar.libc.printf import Printf
from belljar.libc.printf_format import Mistake
from belljar.libc.quotearg import shell_escape


class GnuDialect:
    """printf as coreutils has it."""

    letters = "diouxXeEfFgGaAcsbq"
    stops = True

    def __init__(self, process: Process) -> None:
        self._process = process

    def invalid(self, arg: str, used: int) -> int:
        what = "value not completely converted" if used else "expected a numeric value"
        self._process.warn(f"{quote(arg, self._process.env)}: {what}")
        return 1

    def out_of_range(self, arg: str) -> int:
        self._process.warn(f"{quote(arg, self._process.env)}: Numerical result out of range")
        return 1

    def mistake(self, mistake: Mistake) -> int:
        self._process.warn(f"{mistake.text}: invalid conversion specification")
        return 1

    def missing_digits(self, letter: str) -> int:
        self._process.warn("missing hexadecimal number in escape")
        return 1

    def after_character(self, rest: str) -> None:
        self._process.warn(f"warning: {rest}: character(s) following character constant have been ignored")

    def quote(self, text: str) -> str:
        return shell_escape(text)

    def time(self, template: str, seconds: int) -> str:
        raise AssertionError("%()T is no conversion of this printf")

    def bad_time(self, letter: str) -> None:
        raise AssertionError("%()T is no conversion of this printf")

    def store_count(self, name: str, count: int) -> None:
        raise AssertionError("%n is no conversion of this printf")


@utility("printf")
def main(process: Process, args: list[str]) -> int:
    if args == ["--help"]:
        process.print(main.help().rstrip())
        return 0
    if args == ["--version"]:
        process.print(version("printf"))
        return 0
    if args[:1] == ["--"]:
        args = args[1:]
    if not args:
        raise UsageError("missing operand")
    printf = Printf(GnuDialect(process), args[1:], process.budget)
    data, status = printf.run(args[0])
    process.stdout.write(data)
    if len(args) > 1 and printf.used == 0 and status == 0:
        process.stdout.flush()
        process.warn(f"warning: ignoring excess arguments, starting with '{args[1]}'")
    return status
