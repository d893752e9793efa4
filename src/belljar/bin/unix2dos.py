"""unix2dos - convert text files with Unix line breaks to DOS format

Usage: unix2dos [OPTION]... [FILE]... [-n INFILE OUTFILE]...

Convert each FILE in place; with no FILE, standard input to standard output.
"""

import re

from belljar.bin._kit import utility
from belljar.bin._newlines import Options, convert_files
from belljar.kernel.process import Process

_BARE = re.compile(rb"(?<!\r)\n")


@utility("unix2dos", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    newline = b"\r\n\r\n" if options.extra else b"\r\n"
    return convert_files(process, options, operands, lambda data: _BARE.sub(newline, data), "DOS", "keep")
