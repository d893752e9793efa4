import queue, threading
from concurrent.futures import ThreadPoolExecutor

try:
    with ThreadPoolExecutor(4) as pool:
        print(list(pool.map(lambda n: n * n, range(5))))
except RuntimeError as error:
    print([n * n for n in range(5)])
lock = threading.Lock()
with lock:
    print(lock.locked())
q = queue.PriorityQueue()
for item in (3, 1, 2):
    q.put(item)
print([q.get() for _ in range(3)], threading.current_thread().name)
