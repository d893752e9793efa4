"""java - not in this tier: the Java machine"""

from belljar.bin._absent import NATIVE, absent

main = absent("java", "the Java machine", NATIVE)
