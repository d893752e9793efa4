from operator import attrgetter, itemgetter
import bisect, heapq

people = [{"name": "Ann", "age": 31, "city": "Oslo"}, {"name": "bob", "age": 25, "city": "Rome"}, {"name": "Cy", "age": 31, "city": "Bern"}]
print([p["name"] for p in sorted(people, key=lambda p: (-p["age"], p["city"]))])
print([p["name"] for p in sorted(people, key=itemgetter("city"), reverse=True)], max(people, key=itemgetter("age"))["name"])
print(sorted("bAc", key=str.lower), sorted([3, 1, 2], reverse=True), heapq.nlargest(2, [5, 1, 9]), list(heapq.merge([1, 4], [2, 3])))
scores = [60, 70, 80, 90]
print([("FDCBA"[bisect.bisect(scores, s)], s) for s in (33, 99, 77, 70, 89)])
pairs = {k: v for k, v in zip("cab", range(3))}
print(dict(sorted(pairs.items())), list(reversed(pairs)), {v: k for k, v in pairs.items()}, pairs | {"d": 9})
print(list(map(lambda a, b: a * b, [1, 2], [3, 4])), any([]), all([]), sum(range(101)), [*range(3), *"ab"], min("b", "a"))
