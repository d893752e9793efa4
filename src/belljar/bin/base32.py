"""base32 - base32 encode/decode data and print to standard output

Usage: base32 [OPTION]... [FILE]

Base32 encode or decode FILE, or standard input, to standard output.
"""

from belljar.bin._encode import encoder

main = encoder("base32", __doc__)
