"""pip - not here yet: Python"""

from belljar.bin._absent import PYTHON, absent

main = absent("pip", "Python", PYTHON)
