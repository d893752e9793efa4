"""gcc - not in this tier: a C compiler"""

from belljar.bin._absent import NATIVE, absent

main = absent("gcc", "a C compiler", NATIVE)
