"""apt-get - not in this tier: a package manager"""

from belljar.bin._absent import NATIVE, absent

main = absent("apt-get", "a package manager", NATIVE)
