"""A hundred independent rollouts of one task, side by side."""

import asyncio
import time

from belljar import AsyncSandbox


async def rollout(number: int) -> int:
    async with AsyncSandbox(env={"SEED": str(number)}) as sandbox:
        result = await sandbox.exec("RANDOM=$SEED; echo $((RANDOM % 6 + 1)) > roll; cat roll")
        return int(result.check().stdout)


async def main() -> None:
    began = time.perf_counter()
    rolls = await asyncio.gather(*(rollout(number) for number in range(100)))
    print(f"{len(rolls)} sandboxes in {time.perf_counter() - began:.2f} s; faces seen: {sorted(set(rolls))}")


asyncio.run(main())
