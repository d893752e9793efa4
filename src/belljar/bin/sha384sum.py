"""sha384sum - compute and check SHA384 message digest

Usage: sha384sum [OPTION]... [FILE]...

Print or check SHA384 (384-bit) checksums. With no FILE, or when FILE is -, read standard input.
"""

import hashlib

from belljar.bin._digest import Algorithm, digest_utility

main = digest_utility("sha384sum", Algorithm("SHA384", lambda _bits: hashlib.sha384(), 384), __doc__)
