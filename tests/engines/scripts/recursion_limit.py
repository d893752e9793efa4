import sys


def depth(n):
    return 0 if n == 0 else 1 + depth(n - 1)


def hanoi(n, a="A", b="B", c="C"):
    return 0 if n == 0 else hanoi(n - 1, a, c, b) + 1 + hanoi(n - 1, c, b, a)


print(depth(500), hanoi(10))
try:
    depth(10**6)
except RecursionError as error:
    print(type(error).__name__)


def flatten(items):
    for item in items:
        if isinstance(item, list):
            yield from flatten(item)
        else:
            yield item


print(list(flatten([1, [2, [3, [4]]], 5])), sys.getrecursionlimit() >= 1000)
