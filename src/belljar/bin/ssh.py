"""ssh - not in this tier: a remote shell"""

from belljar.bin._absent import NATIVE, absent

main = absent("ssh", "a remote shell", NATIVE)
