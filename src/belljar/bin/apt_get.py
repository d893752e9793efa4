"""apt-get - say which packages are here already, and which other tools can bring

Usage: apt-get install PACKAGE...

The same as apt.
"""

from belljar.bin._kit import utility
from belljar.bin.apt import run

main = utility("apt-get", doc=__doc__)(run)
