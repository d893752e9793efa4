import gc, weakref


class Node:
    def __init__(self, name):
        self.name = name

    def __del__(self):
        print("gone", self.name)


a = Node("a")
ref = weakref.ref(a, lambda r: print("callback"))
print(ref() is a)
del a
print(ref())
x, y = Node("x"), Node("y")
x.other, y.other = y, x
del x, y
print(gc.collect() > 0)
cache = weakref.WeakValueDictionary()
kept = cache["k"] = Node("k")
print(list(cache), len(cache))
del kept
print(list(cache))
