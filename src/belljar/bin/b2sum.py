"""b2sum - compute and check BLAKE2 message digest

Usage: b2sum [OPTION]... [FILE]...

Print or check BLAKE2b (512-bit) checksums. With no FILE, or when FILE is -, read standard input.
"""

import hashlib

from belljar.bin._digest import Algorithm, digest_utility

main = digest_utility(
    "b2sum", Algorithm("BLAKE2b", lambda bits: hashlib.blake2b(digest_size=(bits or 512) // 8), 512, True), __doc__
)
