"""xzcat - decompress .xz files to standard output

Usage: xzcat [OPTION]... [FILE]...

With no FILE, or when FILE is -, read standard input.
"""

from belljar.bin._compress.xz_tool import XzOptions, run
from belljar.bin._kit import utility
from belljar.kernel.process import Process


@utility("xzcat", XzOptions)
def main(process: Process, options: XzOptions, operands: list[str]) -> int:
    return run(process, options, operands, decompress=True, stdout=True)
