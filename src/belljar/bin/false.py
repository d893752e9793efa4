"""false - do nothing, unsuccessfully

Usage: false [ignored command line arguments]
"""

from belljar.bin._kit import utility
from belljar.kernel.process import Process


@utility("false")
def main(process: Process, args: list[str]) -> int:
    return 1
