"""dos2unix - convert text files with DOS line breaks to Unix format

Usage: dos2unix [OPTION]... [FILE]... [-n INFILE OUTFILE]...

Convert each FILE in place; with no FILE, standard input to standard output.
"""

from belljar.bin._kit import utility
from belljar.bin._newlines import Options, convert_files
from belljar.kernel.process import Process


@utility("dos2unix", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    newline = b"\n\n" if options.extra else b"\n"
    return convert_files(process, options, operands, lambda data: data.replace(b"\r\n", newline), "Unix", "remove")
