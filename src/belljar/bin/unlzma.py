"""unlzma - decompress .lzma files

Usage: unlzma [OPTION]... [FILE]...

With no FILE, or when FILE is -, read standard input.
"""

from belljar.bin._compress.xz_tool import XzOptions, run
from belljar.bin._kit import utility
from belljar.kernel.process import Process


@utility("unlzma", XzOptions)
def main(process: Process, options: XzOptions, operands: list[str]) -> int:
    return run(process, options, operands, decompress=True, stdout=False, old=True)
