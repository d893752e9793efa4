"""true - do nothing, successfully

Usage: true [ignored command line arguments]
"""

from belljar.bin._kit import utility
from belljar.kernel.process import Process


@utility("true")
def main(process: Process, args: list[str]) -> int:
    return 0
