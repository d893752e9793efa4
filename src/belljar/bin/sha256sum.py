"""sha256sum - compute and check SHA256 message digest

Usage: sha256sum [OPTION]... [FILE]...

Print or check SHA256 (256-bit) checksums. With no FILE, or when FILE is -, read standard input.
"""

import hashlib

from belljar.bin._digest import Algorithm, digest_utility

main = digest_utility("sha256sum", Algorithm("SHA256", lambda _bits: hashlib.sha256(), 256), __doc__)
