"""tmux - not in this tier: a terminal multiplexer"""

from belljar.bin._absent import NATIVE, absent

main = absent("tmux", "a terminal multiplexer", NATIVE)
