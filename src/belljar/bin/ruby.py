"""ruby - not in this tier: the Ruby interpreter"""

from belljar.bin._absent import NATIVE, absent

main = absent("ruby", "the Ruby interpreter", NATIVE)
