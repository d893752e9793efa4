from collections import ChainMap, Counter, OrderedDict, defaultdict, deque, namedtuple
from itertools import accumulate, batched, chain, combinations, groupby, islice, pairwise, product, zip_longest

words = "the cat sat on the mat the end".split()
print(Counter(words).most_common(2), (Counter("aab") - Counter("ab")))
index = defaultdict(list)
for position, word in enumerate(words):
    index[len(word)].append(word)
print(dict(index))
d = deque(range(5), maxlen=3)
d.rotate(1)
print(d, OrderedDict(a=1).popitem(), ChainMap({"a": 1}, {"a": 2, "b": 3})["b"])
P = namedtuple("P", "x y", defaults=[0])
print(P(1), P(1)._replace(y=2)._asdict())
print(list(accumulate([1, 2, 3, 4])), list(pairwise("abc")), [list(b) for b in batched(range(5), 2)])
print([(k, len(list(g))) for k, g in groupby(sorted(words), key=len)][:2], list(islice(chain("ab", "cd"), 1, 3)))
print(list(combinations("abc", 2)), list(product([0, 1], repeat=2)), list(zip_longest("ab", "c", fillvalue="-")))
