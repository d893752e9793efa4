"""bzip2 - compress files with the block sorting compressor

Usage: bzip2 [OPTION]... [FILE]...

With no FILE, read standard input and write standard output.
"""

from belljar.bin._compress.bzip2_tool import BzipOptions, run
from belljar.bin._kit import utility
from belljar.kernel.process import Process


@utility("bzip2", BzipOptions)
def main(process: Process, options: BzipOptions, operands: list[str]) -> int:
    return run(process, options, operands, decompress=False, stdout=False)
