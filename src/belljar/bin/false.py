"""false - do nothing, unsuccessfully

Usage: false [ignored command line arguments]
"""

from belljar.bin._kit import utility
from belljar.bin._kit.program import version
from belljar.kernel.process import Process


@utility("false")
def main(process: Process, args: list[str]) -> int:
    if args == ["--help"]:
        process.stdout.write(main.help().encode())
    elif args == ["--version"]:
        process.print(version("false"))
    return 1
