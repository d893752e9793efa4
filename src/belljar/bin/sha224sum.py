"""sha224sum - compute and check SHA224 message digest

Usage: sha224sum [OPTION]... [FILE]...

Print or check SHA224 (224-bit) checksums. With no FILE, or when FILE is -, read standard input.
"""

import hashlib

from belljar.bin._digest import Algorithm, digest_utility

main = digest_utility("sha224sum", Algorithm("SHA224", lambda _bits: hashlib.sha224(), 224), __doc__)
