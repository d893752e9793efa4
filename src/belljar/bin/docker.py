"""docker - not in this tier: a container runtime"""

from belljar.bin._absent import VM, absent

main = absent("docker", "a container runtime", VM)
