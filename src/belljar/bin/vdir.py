"""vdir - list directory contents in long format

Usage: vdir [OPTION]... [FILE]...

List information about the FILEs (the current directory by default). Sort entries alphabetically if none of -cftuvSUX
nor --sort is specified.
"""

from belljar.bin._kit import utility
from belljar.bin._ls.listing import run
from belljar.bin._ls.options import Options
from belljar.kernel.process import Process


@utility("vdir", Options, usage_status=2)
def main(process: Process, options: Options, operands: list[str]) -> int:
    return run(process, options, operands, "vdir")
