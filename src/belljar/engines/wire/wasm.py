"""The one order from an owner to a new process of the WebAssembly template, and its answer.

It compiles a program, of which it is given the bytes and gives back the native code; or it runs one, of which it is
given the native code, and then waits for START as any engine does. It is sealed before it sees either.
"""

from __future__ import annotations

import struct
from typing import Final

MAGIC: Final = b"\0asm"
"""First bytes of a WebAssembly file."""
COMPILE, RUN = b"c", b"r"
"""The orders: a program's length and the program follow the first, a descriptor goes with the second."""
LENGTH: Final = struct.Struct("<Q")
MADE, REFUSED, SPENT = b"+", b"-", b"!"
"""Results of a compilation: native code; a reason; or the processor time was used up."""
RESULT: Final = struct.Struct("<cdQ")
"""One of these, the seconds of processor time it took, and how many bytes follow."""
PROGRAM_MAX: Final = 128 << 20


class NotCompiled(LookupError):
    """The owner has no native code of the program."""


class CompilerRefused(RuntimeError):
    """The program can't be compiled; says why. `seconds` of processor time went into it, `spent`: all there were."""

    def __init__(self, reason: str, seconds: float = 0.0, *, spent: bool = False) -> None:
        super().__init__(reason)
        self.seconds = seconds
        self.spent = spent
