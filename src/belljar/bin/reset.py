"""reset - put the terminal back into a sane state

Usage: reset [TERM]
"""

from belljar.bin._kit import utility
from belljar.kernel.process import Process


@utility("reset")
def main(process: Process, args: list[str]) -> int:
    if args == ["--help"]:
        process.stdout.write(main.help().encode())
        return 0
    if process.isatty(0):
        process.wait_for(process.spawn(["/usr/bin/stty", "sane"]))
    process.print("\x1bc\x1b[!p\x1b[?3;4l\x1b[4l\x1b>", end="")
    return 0
