import asyncio


async def worker(name, queue, done):
    while True:
        item = await queue.get()
        await asyncio.sleep(item / 1000)
        done.append((name, item))
        queue.task_done()


async def main():
    queue, done = asyncio.Queue(), []
    for item in (3, 1, 2, 1):
        queue.put_nowait(item)
    tasks = [asyncio.create_task(worker(n, queue, done)) for n in "ab"]
    await queue.join()
    for task in tasks:
        task.cancel()
    print(await asyncio.gather(*tasks, return_exceptions=True))
    print(sorted(item for _, item in done))
    try:
        async with asyncio.timeout(0.01):
            await asyncio.sleep(5)
    except TimeoutError:
        print("timed out")
    async with asyncio.TaskGroup() as group:
        first = group.create_task(asyncio.sleep(0.001, "one"))
        second = group.create_task(asyncio.sleep(0, "two"))
    print(first.result(), second.result())
    lock = asyncio.Lock()
    async with lock:
        print(lock.locked())


asyncio.run(main())
