"""cargo - not in this tier: the Rust package manager"""

from belljar.bin._absent import NATIVE, absent

main = absent("cargo", "the Rust package manager", NATIVE)
