"""python3 - not here yet: Python"""

from belljar.bin._absent import PYTHON, absent

main = absent("python3", "Python", PYTHON)
