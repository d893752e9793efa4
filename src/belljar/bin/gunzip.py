"""gunzip - uncompress files

Usage: gunzip [OPTION]... [FILE]...

Uncompress FILEs (by default, in-place).
With no FILE, or when FILE is -, read standard input.
"""

from belljar.bin._compress.gzip_tool import GzipOptions, run
from belljar.bin._kit import utility
from belljar.kernel.process import Process


@utility("gunzip", GzipOptions)
def main(process: Process, options: GzipOptions, operands: list[str]) -> int:
    return run(process, options, operands, decompress=True, stdout=False)
