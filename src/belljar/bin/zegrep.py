"""zegrep - search compressed files as egrep does

Usage: zegrep [GREP OPTION]... PATTERN [FILE]...

The same as zgrep -E.
"""

from belljar.bin._script import script_utility
from belljar.bin.zgrep import SCRIPT

main = script_utility("zegrep", __doc__, f'set -- -E "$@"\n{SCRIPT}')
