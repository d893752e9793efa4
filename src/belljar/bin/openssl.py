"""openssl - not in this tier: the OpenSSL tool"""

from belljar.bin._absent import NATIVE, absent

main = absent("openssl", "the OpenSSL tool", NATIVE)
