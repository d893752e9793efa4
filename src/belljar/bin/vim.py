"""vim - not in this tier: a full-screen editor"""

from belljar.bin._absent import NATIVE, absent

main = absent("vim", "a full-screen editor", NATIVE)
