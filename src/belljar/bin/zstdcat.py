"""zstdcat - decompress .zst files to standard output

Usage: zstdcat [OPTION]... [FILE]...

With no FILE, or when FILE is -, read standard input.
"""

from belljar.bin._compress.zstd_tool import run
from belljar.bin._kit import utility
from belljar.kernel.process import Process


@utility("zstdcat")
def main(process: Process, args: list[str]) -> int:
    return run(process, args, decompress=True, stdout=True)
