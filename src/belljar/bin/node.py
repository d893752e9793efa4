"""node - not here yet: JavaScript"""

from belljar.bin._absent import JAVASCRIPT, absent

main = absent("node", "JavaScript", JAVASCRIPT)
