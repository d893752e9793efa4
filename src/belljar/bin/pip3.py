"""pip3 - install Python packages (pip by its other name)"""

from belljar.bin import pip

main = pip.main
