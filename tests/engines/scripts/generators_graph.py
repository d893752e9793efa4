import heapq
from collections import deque

graph = {"a": {"b": 7, "c": 3}, "b": {"d": 2}, "c": {"b": 1, "d": 8}, "d": {}}


def dijkstra(start):
    best, queue = {}, [(0, start, None)]
    while queue:
        cost, node, via = heapq.heappop(queue)
        if node not in best:
            best[node] = cost, via
            for other, weight in graph[node].items():
                heapq.heappush(queue, (cost + weight, other, node))
    return best


def bfs(start):
    seen, queue = {start}, deque([start])
    while queue:
        node = queue.popleft()
        yield node
        for other in sorted(graph[node]):
            if other not in seen:
                seen.add(other)
                queue.append(other)


def topological():
    from graphlib import CycleError, TopologicalSorter

    yield list(TopologicalSorter({k: set(v) for k, v in graph.items()}).static_order())
    try:
        TopologicalSorter({"x": {"y"}, "y": {"x"}}).prepare()
    except CycleError as error:
        yield sorted(set(error.args[1]))


print(dijkstra("a"), list(bfs("a")), *topological(), sep="\n")


def average():
    total = count = 0
    value = None
    while True:
        value = yield value
        total, count = total + value, count + 1
        value = total / count


gen = average()
next(gen)
print([gen.send(n) for n in (10, 20, 60)])
