"""md5sum - compute and check MD5 message digest

Usage: md5sum [OPTION]... [FILE]...

Print or check MD5 (128-bit) checksums. With no FILE, or when FILE is -, read standard input.
"""

import hashlib

from belljar.bin._digest import Algorithm, digest_utility

main = digest_utility("md5sum", Algorithm("MD5", lambda _bits: hashlib.md5(usedforsecurity=False), 128), __doc__)
