"""poll_oneoff: waiting for descriptors and clocks."""

from __future__ import annotations

import struct
from typing import Final

from belljar.abi.flags import POLLHUP, POLLIN, POLLOUT
from belljar.engines.wasi import numbers as n
from belljar.engines.wasi.program import Program, Refused

SUBSCRIPTIONS_MAX: Final = 4096
_EVENT: Final = struct.Struct("<QHB5xQH6x")
_SUBSCRIPTION: Final = struct.Struct("<QB7x")
_CLOCK: Final = struct.Struct("<I4xQQH")


class Waiting(Program):
    """poll_oneoff."""

    def poll_oneoff(self, subscriptions: int, events: int, count: int, result: int) -> int:
        if not 0 < count <= SUBSCRIPTIONS_MAX:
            return n.EINVAL
        self.memory.check(events, 32 * count)
        self.memory.check(result, 4)
        raw = self.memory.read(subscriptions, 48 * count)
        clocks: list[tuple[int, int]] = []
        waits: list[tuple[int, int, int]] = []
        happened: list[bytes] = []
        for at in range(0, 48 * count, 48):
            userdata, tag = _SUBSCRIPTION.unpack_from(raw, at)
            if tag == n.SUBSCRIBE_CLOCK:
                clock, timeout, _, flags = _CLOCK.unpack_from(raw, at + 16)
                if clock > n.CLOCK_MONOTONIC:
                    happened.append(_EVENT.pack(userdata, n.ENOTSUP, tag, 0, 0))
                    continue
                if flags & n.CLOCK_ABSOLUTE:
                    timeout -= self.world.time_ns(clock)
                clocks.append((min(max(0, timeout), 1 << 62), userdata))
            elif tag in (n.SUBSCRIBE_READ, n.SUBSCRIBE_WRITE):
                (fd,) = struct.unpack_from("<I", raw, at + 16)
                if self.local(fd) is not None:
                    happened.append(_EVENT.pack(userdata, 0, tag, 1, 0))
                    continue
                try:
                    self.descriptor(fd)
                except Refused as error:
                    happened.append(_EVENT.pack(userdata, error.errno, tag, 0, 0))
                    continue
                waits.append((fd, tag, userdata))
            else:
                return n.EINVAL
        happened += self._wait(waits, clocks, ready=bool(happened))
        for index, event in enumerate(happened):
            self.memory.write(events + 32 * index, event)
        self.memory.write_u32(result, len(happened))
        return 0

    def _wait(self, waits: list[tuple[int, int, int]], clocks: list[tuple[int, int]], *, ready: bool) -> list[bytes]:
        first = min(clocks, default=None)
        if not waits:
            if first is None or ready:
                return []
            try:
                self.call("sleep", first[0])
            except Refused as refused:
                # A C library takes any error of a sleep for a bug; the guest sees the signal when it goes on.
                if refused.errno != n.EINTR:
                    raise
            return [_EVENT.pack(userdata, 0, n.SUBSCRIBE_CLOCK, 0, 0) for at, userdata in clocks if at <= first[0]]
        fds = [fd for fd, _, _ in waits]
        wanted = [POLLIN if tag == n.SUBSCRIBE_READ else POLLOUT for _, tag, _ in waits]
        timeout = 0 if ready else first[0] if first is not None else -1
        (found,) = self.call("poll", fds, wanted, timeout)
        events = [
            _EVENT.pack(
                userdata, 0, tag, 1 if tag == n.SUBSCRIBE_READ else 65536, n.EVENT_HANGUP if got & POLLHUP else 0
            )
            for (_, tag, userdata), got in zip(waits, found, strict=True)
            if got
        ]
        if not events and first is not None and not ready:
            events = [_EVENT.pack(userdata, 0, n.SUBSCRIBE_CLOCK, 0, 0) for at, userdata in clocks if at <= first[0]]
        return events
