"""screen - not in this tier: a terminal multiplexer"""

from belljar.bin._absent import NATIVE, absent

main = absent("screen", "a terminal multiplexer", NATIVE)
