"""go - not in this tier: the Go compiler"""

from belljar.bin._absent import NATIVE, absent

main = absent("go", "the Go compiler", NATIVE)
