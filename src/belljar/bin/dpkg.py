"""dpkg - not in this tier: a package manager"""

from belljar.bin._absent import NATIVE, absent

main = absent("dpkg", "a package manager", NATIVE)
