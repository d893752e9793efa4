"""fgrep - print lines that contain fixed strings

Usage: fgrep [OPTION]... PATTERNS [FILE]...

The same as grep -F.
"""

from belljar.bin.grep import program

main = program("fgrep", __doc__, "fixed")
