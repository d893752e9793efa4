"""Arguments, environment, clocks, entropy, and the end: what a program finds around it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from belljar.engines.wasi import numbers as n
from belljar.engines.wasi.program import Program

RANDOM_MAX: Final = 64 << 20


class Surroundings(Program):
    """A program's surroundings."""

    def args_get(self, pointers: int, data: int) -> int:
        return self._strings(self.args, pointers, data)

    def args_sizes_get(self, count: int, size: int) -> int:
        return self._sizes(self.args, count, size)

    def environ_get(self, pointers: int, data: int) -> int:
        return self._strings(self.environ, pointers, data)

    def environ_sizes_get(self, count: int, size: int) -> int:
        return self._sizes(self.environ, count, size)

    def _strings(self, strings: Sequence[bytes], pointers: int, data: int) -> int:
        for index, text in enumerate(strings):
            self.memory.write_u32(pointers + 4 * index, data)
            self.memory.write(data, text + b"\0")
            data += len(text) + 1
        return 0

    def _sizes(self, strings: Sequence[bytes], count: int, size: int) -> int:
        self.memory.write_u32(count, len(strings))
        self.memory.write_u32(size, sum(len(text) + 1 for text in strings))
        return 0

    # Clocks, entropy, the end.

    def clock_res_get(self, clock: int, result: int) -> int:
        if clock > n.CLOCK_THREAD:
            return n.EINVAL
        self.memory.write_u64(result, 1)
        return 0

    def clock_time_get(self, clock: int, _precision: int, result: int) -> int:
        if clock > n.CLOCK_THREAD:
            return n.EINVAL
        self.memory.write_u64(result, self.world.time_ns(clock))
        return 0

    def random_get(self, address: int, length: int) -> int:
        self.memory.check(address, length)
        if length > RANDOM_MAX:
            return n.EINVAL
        self.memory.write(address, self.world.random_bytes(length))
        return 0

    def sched_yield(self) -> int:
        return 0

    def proc_exit(self, code: int) -> int:
        return self.world.exit(code)

    def proc_raise(self, signal: int) -> int:
        pid = self.call("ids")[0][0]
        self.call("kill", pid, signal)
        return 0
