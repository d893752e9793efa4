"""egrep - print lines that match extended regular expressions

Usage: egrep [OPTION]... PATTERNS [FILE]...

The same as grep -E.
"""

from belljar.bin.grep import program

main = program("egrep", __doc__, "egrep")
