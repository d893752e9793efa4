"""base64 - base64 encode/decode data and print to standard output

Usage: base64 [OPTION]... [FILE]

Base64 encode or decode FILE, or standard input, to standard output.
"""

from belljar.bin._encode import encoder

main = encoder("base64", __doc__)
