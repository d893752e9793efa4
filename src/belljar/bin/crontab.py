"""crontab - not in this tier: a job scheduler"""

from belljar.bin._absent import VM, absent

main = absent("crontab", "a job scheduler", VM)
