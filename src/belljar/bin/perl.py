"""perl - not in this tier: the Perl interpreter"""

from belljar.bin._absent import NATIVE, absent

main = absent("perl", "the Perl interpreter", NATIVE)
