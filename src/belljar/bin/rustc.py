"""rustc - not in this tier: the Rust compiler"""

from belljar.bin._absent import NATIVE, absent

main = absent("rustc", "the Rust compiler", NATIVE)
