"""sha512sum - compute and check SHA512 message digest

Usage: sha512sum [OPTION]... [FILE]...

Print or check SHA512 (512-bit) checksums. With no FILE, or when FILE is -, read standard input.
"""

import hashlib

from belljar.bin._digest import Algorithm, digest_utility

main = digest_utility("sha512sum", Algorithm("SHA512", lambda _bits: hashlib.sha512(), 512), __doc__)
