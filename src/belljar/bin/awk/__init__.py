"""awk - scan text for patterns and process what matches

Usage: awk [-F fs] [-v var=value]... [--] 'program' [FILE]...
       awk [-F fs] [-v var=value]... -f progfile [--] [FILE]...
"""

from belljar.bin._kit import utility
from belljar.bin.awk.session import Session
from belljar.bin.awk.world import ProcessWorld
from belljar.kernel.process import Process


@utility("awk", usage_status=2)
def main(process: Process, args: list[str]) -> int:
    return Session(ProcessWorld(process), process.name).run(args)
