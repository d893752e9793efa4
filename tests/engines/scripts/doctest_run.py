"""
>>> add(2, 3)
5
>>> add("a", "b")
'ab'
>>> add(1, "x")
Traceback (most recent call last):
    ...
TypeError: unsupported operand type(s) for +: 'int' and 'str'
>>> [n for n in range(3)]
[0, 1]
"""
import doctest, sys


def add(a, b):
    return a + b


results = doctest.testmod(report=False, verbose=False)
print(results.failed, results.attempted)
