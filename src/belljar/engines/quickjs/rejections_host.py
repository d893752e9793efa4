"""Has QuickJS tell of each promise that is rejected while nobody handles it, and of each that is handled after all.

QuickJS calls a function for that, if its runtime has one; quickjs-rs never sets it. So it is set from outside: the
function goes into the module's table, its number into the runtime's record. Where that is, is found by what is beside
it, once, in a template; then two promises prove it.
"""

from __future__ import annotations

import struct
from typing import Final

from belljar.engines.quickjs.machine_host import Machine
from belljar.engines.quickjs.values_host import Values

FUNCTION: Final = ("env", "rejection")
SIGNATURE: Final = "iIIii"
"""The context, the promise, the reason, whether it is handled, and a word of the function's own."""
_WORD: Final = struct.Struct("<I")
_FUNCTIONS_MAX: Final = 4096
_OBJECT: Final = 0xFFFFFFFF


class NotFound(RuntimeError):
    """The engine is not built as expected."""


class Rejections:
    """Rejections reported since the last look: promise handles, each with whether it is still unhandled."""

    def __init__(self) -> None:
        self._values: Values | None = None
        self.told: list[tuple[int, bool]] = []

    def hear(self, _context: int, promise: int, _reason: int, handled: int, _own: int) -> None:
        """Called by the engine."""
        if self._values is not None and promise >> 32 & _OBJECT == _OBJECT:
            self.told.append((self._values.adopt(promise), not handled))

    def install(self, machine: Machine, values: Values) -> None:
        """Raises NotFound."""
        self._values = values
        memory = machine.memory
        contents = memory.read(0, memory.size())
        places = list(_places(contents))
        if len(places) != 1:
            raise NotFound(f"the runtime's record is not where it should be: {len(places)} places look like it")
        memory.write_u32(places[0], machine.put_into_table(*FUNCTION))
        values.free(values.evaluate("Promise.reject(0); Promise.reject(1).catch(() => {}); 0"))
        told = [fresh for _, fresh in self.told]
        self.clear()
        if told != [True, True, False]:
            raise NotFound(f"the engine tells of promises what it should not: {told}")

    def clear(self) -> None:
        for handle, _ in self.told:
            if self._values is not None:
                self._values.free(handle)
        self.told.clear()


def _places(contents: bytes) -> list[int]:
    """Return where in memory the runtime may keep its tracker of rejections.

    In its record that is, with a word for the tracker, right before the list of jobs, which is empty and so points to
    itself; and a few words after the function that says whether to stop, which is set.
    """
    words = memoryview(contents).cast("I")
    found = []
    for index in range(8, len(words) - 1):
        here = 4 * index
        if (
            words[index] == here
            and words[index + 1] == here
            and not any(words[index - 5 : index])
            and 0 < words[index - 7] < _FUNCTIONS_MAX
            and words[index - 6] != 0
        ):
            found.append(here - 8)
    return found
