"""gzip - compress or expand files

Usage: gzip [OPTION]... [FILE]...

Compress or uncompress FILEs (by default, compress FILEs in-place).
With no FILE, or when FILE is -, read standard input.
"""

from belljar.bin._compress.gzip_tool import GzipOptions, run
from belljar.bin._kit import utility
from belljar.kernel.process import Process


@utility("gzip", GzipOptions)
def main(process: Process, options: GzipOptions, operands: list[str]) -> int:
    return run(process, options, operands, decompress=bool(options.decompress), stdout=False)
