"""sha1sum - compute and check SHA1 message digest

Usage: sha1sum [OPTION]... [FILE]...

Print or check SHA1 (160-bit) checksums. With no FILE, or when FILE is -, read standard input.
"""

import hashlib

from belljar.bin._digest import Algorithm, digest_utility

main = digest_utility("sha1sum", Algorithm("SHA1", lambda _bits: hashlib.sha1(usedforsecurity=False), 160), __doc__)
