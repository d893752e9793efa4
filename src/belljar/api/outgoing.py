"""Frames on their way to a worker, which takes them when it likes."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import islice, takewhile
from typing import Final

OWED_MAX: Final = 1 << 20
"""Bytes of unsent answers at which nothing more is received: a worker that does not read its answers asks no more."""
UNTAKEN_MAX: Final = 64
"""Frames with descriptors that a worker need not have taken yet; those on their way count for all of a user's
processes together, so nobody may have many."""
_AT_ONCE: Final = 64
"""Frames that are sent by one system call."""


class Outgoing:
    """A queue of frames, each with the descriptors that go with its first byte. Counts bytes; does no I/O."""

    __slots__ = ("_frames", "_handed", "_passing", "owed", "queued", "written")

    def __init__(self) -> None:
        self._frames: deque[tuple[memoryview, Sequence[int], bool]] = deque()
        self.queued = 0
        self.written = 0
        """Bytes in all, ever."""
        self.owed = 0
        """Bytes of answers that are not sent yet."""
        self._handed: deque[int] = deque()
        """Where frames with descriptors end, by the bytes queued until then."""
        self._passing: int | None = None
        """How many frames may still be sent, while others are held back."""

    def __bool__(self) -> bool:
        return bool(self._frames) and self._passing != 0

    def hold(self) -> None:
        """Hold back all frames that are queued from now on."""
        self._passing = len(self._frames)

    def release(self, frame: bytes) -> None:
        """Go on, with this frame first; after `clear` nothing is sent."""
        if self._passing is None:
            return
        self._frames.insert(self._passing, (memoryview(frame), (), False))
        self._passing = None
        self.written -= len(frame)  # so that those held back are sent when `written` has come to where they were put

    def put(self, frame: bytes, fds: Sequence[int] = (), *, answer: bool = False) -> int:
        """Queue a frame; it is sent when `written` has come to what this returns."""
        self._frames.append((memoryview(frame), fds, answer))
        self.queued += len(frame)
        if fds:
            self._handed.append(self.queued)
        if answer:
            self.owed += len(frame)
        return self.queued

    @property
    def congested(self) -> bool:
        """Whether the worker owes us so much reading that we read nothing of it."""
        return self.owed > OWED_MAX

    def untaken(self, unread: int) -> int:
        """Frames with descriptors that the worker may not have taken, if it has not read so many of the bytes sent."""
        while self._handed and self._handed[0] <= self.written - unread:
            self._handed.popleft()
        return len(self._handed)

    def first(self) -> tuple[list[memoryview], Sequence[int]]:
        """The bytes to send now, and their descriptors: these are the caller's, to close or to `give_back`."""
        data, fds, answer = self._frames[0]
        if fds:
            self._frames[0] = data, (), answer
        most = _AT_ONCE if self._passing is None else min(_AT_ONCE, self._passing)
        if fds or len(self._frames) == 1:
            return [data], fds
        return [data for data, _, _ in takewhile(lambda frame: not frame[1], islice(self._frames, most))], ()

    def sent(self, count: int) -> None:
        """So much of `first()` was sent."""
        self.written += count
        while count:
            data, _, answer = self._frames[0]
            part = min(count, len(data))
            count -= part
            if answer:
                self.owed -= part
            if part == len(data):
                self._frames.popleft()
                if self._passing is not None:
                    self._passing -= 1
            else:
                self._frames[0] = data[part:], (), answer

    def give_back(self, fds: Sequence[int]) -> None:
        """Nothing of `first()` was sent: they still go with it."""
        data, _, answer = self._frames[0]
        self._frames[0] = data, fds, answer

    def clear(self) -> list[int]:
        """Nothing more will be sent; gives the descriptors to close."""
        frames, self._frames = self._frames, deque()
        self.owed, self._passing = 0, None
        return [fd for _, fds, _ in frames for fd in fds]
