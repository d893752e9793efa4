"""echo - display a line of text

Usage: echo [-neE] [STRING]...

Write the STRINGs, separated by spaces, and a newline.

  -n  no trailing newline
  -e  interpret backslash escapes
  -E  don't (the default)
"""

from belljar.bin._kit import utility
from belljar.bin._kit.program import version
from belljar.kernel.process import Process
from belljar.libc.escapes import ARGUMENT
from belljar.shell.echo import render


@utility("echo")
def main(process: Process, args: list[str]) -> int:
    if args == ["--help"]:
        process.print(main.help().rstrip())
    elif args == ["--version"]:
        process.print(version("echo"))
    else:
        posix = "POSIXLY_CORRECT" in process.env
        options = not posix or args[:1] == ["-n"]
        # Unlike the builtin, GNU's takes an octal code without a leading zero too.
        process.stdout.write(render(args, escapes=posix, options=options, dialect=ARGUMENT))
    return 0
