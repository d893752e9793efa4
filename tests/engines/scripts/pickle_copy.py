import copy, pickle, pprint, shelve


class Node:
    def __init__(self, value, next=None):
        self.value, self.next = value, next

    def __eq__(self, other):
        return self.value == other.value


ring = Node(1)
ring.next = ring
again = pickle.loads(pickle.dumps(ring))
print(again.next is again, again == ring)
deep = {"a": [1, {"b": (2, 3)}]}
other = copy.deepcopy(deep)
other["a"][1]["b"] = None
print(deep, copy.copy(deep)["a"] is deep["a"])
pprint.pprint({"key": list(range(30)), "nested": {"x": ["long string " * 3] * 2}}, width=60)
