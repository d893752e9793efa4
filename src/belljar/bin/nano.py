"""nano - not in this tier: a full-screen editor"""

from belljar.bin._absent import NATIVE, absent

main = absent("nano", "a full-screen editor", NATIVE)
