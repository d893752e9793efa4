"""zstd - compress or decompress .zst files

Usage: zstd [OPTION]... [FILE]...

With no FILE, or when FILE is -, read standard input.
"""

from belljar.bin._compress.zstd_tool import run
from belljar.bin._kit import utility
from belljar.kernel.process import Process


@utility("zstd")
def main(process: Process, args: list[str]) -> int:
    return run(process, args, decompress=False, stdout=False)
