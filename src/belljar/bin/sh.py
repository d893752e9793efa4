"""sh - the shell in POSIX mode

Usage: sh [option] [script [argument]...]
       sh [option] -c command [name [argument]...]
"""

from belljar.kernel.process import Process
from belljar.shell.main import main as shell_main


def main(process: Process) -> int:
    return shell_main(process)
