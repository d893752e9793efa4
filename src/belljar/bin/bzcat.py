"""bzcat - decompress files to standard output

Usage: bzcat [OPTION]... [FILE]...

With no FILE, read standard input and write standard output.
"""

from belljar.bin._compress.bzip2_tool import BzipOptions, run
from belljar.bin._kit import utility
from belljar.kernel.process import Process


@utility("bzcat", BzipOptions)
def main(process: Process, options: BzipOptions, operands: list[str]) -> int:
    return run(process, options, operands, decompress=True, stdout=True)
