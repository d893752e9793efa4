"""cc - not in this tier: a C compiler"""

from belljar.bin._absent import NATIVE, absent

main = absent("cc", "a C compiler", NATIVE)
