"""systemctl - not in this tier: a service manager"""

from belljar.bin._absent import VM, absent

main = absent("systemctl", "a service manager", VM)
