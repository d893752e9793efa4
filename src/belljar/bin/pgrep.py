"""pgrep - look up processes by name and other attributes

Usage: pgrep [OPTION]... PATTERN
"""

from belljar.bin._kit import utility
from belljar.bin._pgrep import Options, select, shown
from belljar.kernel.process import Process


@utility("pgrep", Options, usage_status=2)
def main(process: Process, options: Options, operands: list[str]) -> int:
    rows = select(process, options, operands)
    if options.count:
        process.print(str(len(rows)))
    elif rows:
        process.print(options.delimiter.join(shown(row, options) for row in rows))
    return 0 if rows else 1
