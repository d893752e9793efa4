"""zcat - uncompress files to standard output

Usage: zcat [OPTION]... [FILE]...

With no FILE, or when FILE is -, read standard input.
"""

from belljar.bin._compress.gzip_tool import GzipOptions, run
from belljar.bin._kit import utility
from belljar.kernel.process import Process


@utility("zcat", GzipOptions)
def main(process: Process, options: GzipOptions, operands: list[str]) -> int:
    return run(process, options, operands, decompress=True, stdout=True)
