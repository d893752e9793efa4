"""coreutils - run a utility by its name

Usage: coreutils [--coreutils-prog=]NAME [ARG]...
       coreutils --list
"""

from belljar.bin._kit import utility
from belljar.bin._kit.dispatch import dispatch
from belljar.kernel.process import Process


@utility("coreutils")
def main(process: Process, args: list[str]) -> int:
    if args and args[0].startswith("--coreutils-prog="):
        args = [args[0].partition("=")[2], *args[1:]]
    return dispatch(process, args, "program")
