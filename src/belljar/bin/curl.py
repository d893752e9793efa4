"""curl - not here yet: the web"""

from belljar.bin._absent import NETWORK, absent

main = absent("curl", "the web", NETWORK)
