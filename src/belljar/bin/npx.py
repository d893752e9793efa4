"""npx - run a command of an npm package

Usage: npx [OPTION]... COMMAND[@VERSION] [ARG]...
       npx -p PACKAGE... -c 'COMMAND LINE'

The command of an installed package, or of one that is fetched for this run.
"""

from belljar.bin._kit import utility
from belljar.bin.npm.run import run_npx
from belljar.kernel.process import Process


@utility("npx")
def main(process: Process, args: list[str]) -> int:
    return run_npx(process, args, main.help())
