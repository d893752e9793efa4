"""apt - not in this tier: a package manager"""

from belljar.bin._absent import NATIVE, absent

main = absent("apt", "a package manager", NATIVE)
