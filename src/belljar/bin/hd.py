"""hd - display file contents in canonical hex and ASCII (hexdump -C)

Usage: hd [OPTION]... [FILE]...
"""

from belljar.bin._kit import utility
from belljar.bin.hexdump import CANONICAL, Options, run
from belljar.kernel.process import Process


@utility("hd", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    return run(process, options, operands, CANONICAL)
