"""sudo - not in this tier: another user's rights"""

from belljar.bin._absent import VM, absent

main = absent("sudo", "another user's rights", VM)
