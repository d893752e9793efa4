import asyncio


async def numbers(n):
    for i in range(n):
        await asyncio.sleep(0)
        yield i


async def main():
    print([i * i async for i in numbers(5) if i % 2 == 0])
    event = asyncio.Event()
    asyncio.get_running_loop().call_later(0.001, event.set)
    await event.wait()
    results = []
    for coroutine in asyncio.as_completed([asyncio.sleep(0.5, "slow"), asyncio.sleep(0.001, "fast")]):
        results.append(await coroutine)
    print(results)
    semaphore = asyncio.Semaphore(2)

    async def limited(i):
        async with semaphore:
            await asyncio.sleep(0.001)
            if i == 3:
                raise ValueError("three")
            return i

    print(await asyncio.gather(*(limited(i) for i in range(5)), return_exceptions=True))


asyncio.run(main())
