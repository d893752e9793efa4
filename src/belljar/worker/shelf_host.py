"""Puts a zygote's memory into a file, so that a fork of it costs less.

For memory of its own, fork(2) copies the page table, entry by entry, 0.1 us each: most of what a fork of 45 MB costs.
Of a private mapping of a file it copies what the process has used, and a branch finds the other pages by itself when it
reads them; when it writes to one, it gets a copy of its own just as before. Most of a zygote's memory are programs that
most workers never run. So all of it goes on the shelf, a file in memory which nothing else can see, and which nobody
can write to any more.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import struct
from collections.abc import Iterator
from fcntl import F_ADD_SEALS, F_SEAL_GROW, F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_WRITE, fcntl
from typing import Final

_PAGE: Final = mmap.PAGESIZE
_MANY: Final = 64
"""Pages in a row that are worth a mapping of their own."""
_ROOM: Final = 1 << 40
"""The file's size, of which only what is moved takes memory: what is enlarged in place never meets its end."""
_IN_USE: Final = 3 << 62
"""Present, or swapped out."""
_ENTRY: Final = struct.Struct("=Q")
"""What /proc/self/pagemap says of a page."""
_ALL: Final = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC

_MOVE: Final = bytes.fromhex(
    "53 4154 4155"  # push rbx, r12, r13
    "4889fb 4989f4 4989d5"  # rbx = the runs, r12 = how many are left, r13 = the file
    "4d85e4 7449"  # next: if none is left, end
    "4c89ef 488b33 488b5308 4c8b5310 b812000000 0f05"  # pwrite(r13, start, length, offset)
    "483b4308 752e"  # if that was not all of it, end
    "488b3b 488b7308 ba03000000 41ba12000000 4d89e8 4c8b4b10 b809000000 0f05"
    # mmap(start, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, r13, offset)
    "483b03 7509"  # if that failed, end
    "4883c318 49ffcc ebb2"  # the next one
    "4c89e0 415d 415c 5b c3"  # end: return r12
)
"""long move(struct { long start, length, offset; } *runs, long count, long file), for x86-64.

Python can't do it: between the two calls it would write to its own memory, and what it wrote would be lost.
"""


class Shelf:
    """Made while /proc can still be seen."""

    def __init__(self) -> None:
        self._pages = os.open("/proc/self/pagemap", os.O_RDONLY)
        self._places = _own_memory()

    def fill(self) -> int:
        """Put on it what there is. Gives how many bytes: none on other machines."""
        runs = list(self._runs()) if platform.machine() == "x86_64" else []
        os.close(self._pages)
        if not runs:
            return 0
        file = os.memfd_create("belljar", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(file, _ROOM)
        left = _move(runs, file)
        fcntl(file, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL)
        os.close(file)
        return sum(length for _, length, _ in runs[: len(runs) - left])

    def _runs(self) -> Iterator[tuple[int, int, int]]:
        """What is in use, with the small holes in it: in few parts, each with its place in the file."""
        offset = 0
        for place in self._places:
            entries = os.pread(self._pages, len(place) // _PAGE * _ENTRY.size, place.start // _PAGE * _ENTRY.size)
            used = [number for number, (entry,) in enumerate(_ENTRY.iter_unpack(entries)) if entry & _IN_USE]
            first = 0
            for index, number in enumerate(used, 1):
                if index == len(used) or used[index] - number > _MANY:
                    length = (number + 1 - used[first]) * _PAGE
                    if length >= _MANY * _PAGE:
                        yield place.start + used[first] * _PAGE, length, offset
                        offset += length
                    first = index


def _own_memory() -> list[range]:
    """The places of memory that is no file's."""
    with open("/proc/self/maps") as lines:
        fields = [line.split() for line in lines]
    return [
        range(*(int(number, 16) for number in place.split("-")))
        for place, rights, _offset, _device, inode, *name in fields
        if rights == "rw-p" and inode == "0" and name in ([], ["[heap]"])
    ]


def _move(runs: list[tuple[int, int, int]], file: int) -> int:
    """Into the file, and the file into their place. Gives how many were left."""
    numbers = (ctypes.c_long * (3 * len(runs)))(*(number for run in runs for number in run))
    try:
        code = mmap.mmap(-1, _PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, _ALL)
    except OSError:
        return len(runs)  # a system that lets nobody make code
    code.write(_MOVE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(code))
    left: int = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_void_p, ctypes.c_long, ctypes.c_long)(start)(
        ctypes.addressof(numbers), len(runs), file
    )
    code.close()
    return left
