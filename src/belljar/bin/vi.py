"""vi - edit files by commands

Usage: vi -e|-es [-c COMMAND]... FILE...

There is no full-screen editor. With -e, -s or -c this is ex, as scripts call it; without, it says what to use instead.
"""

from belljar.bin._kit import utility
from belljar.bin.ex import Options, plus_commands, run
from belljar.kernel.process import Process


@utility("vi", Options, rewrite=plus_commands)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if not (options.ex or options.improved or options.silent or options.commands):
        process.warn("there is no full-screen editor here; ed, ex -s and sed -i edit files, and so does python3")
        return 1
    return run(process, list(options.commands), operands)
