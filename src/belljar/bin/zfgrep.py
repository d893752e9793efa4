"""zfgrep - search compressed files as fgrep does

Usage: zfgrep [GREP OPTION]... PATTERN [FILE]...

The same as zgrep -F.
"""

from belljar.bin._script import script_utility
from belljar.bin.zgrep import SCRIPT

main = script_utility("zfgrep", __doc__, f'set -- -F "$@"\n{SCRIPT}')
