"""bash - GNU Bourne-Again SHell, belljar's own

Usage: bash [long option] [option] [script [argument]...]
       bash [option] -c command [name [argument]...]
"""

from belljar.kernel.process import Process
from belljar.shell.main import main as shell_main


def main(process: Process) -> int:
    return shell_main(process)
