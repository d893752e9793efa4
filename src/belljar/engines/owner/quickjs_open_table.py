"""Opens a WebAssembly module's table of functions: it may grow, and its host may put functions into it.

quickjs-rs has no way to hear of a rejected promise that nobody handles; QuickJS has, for whoever can give it a
function. Nothing else of the module changes: one limit is taken away, one name added.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

NAME: Final = b"table"
_HEAD: Final = 8


def open_table(module: bytes) -> bytes:
    """The module with its first table exported and without a maximum. Raises ValueError if it is not as expected."""
    made = bytearray(module[:_HEAD])
    for number, body in sections(module):
        match number:
            case 4:  # tables
                body = _without_maximum(body)
            case 7:  # exports
                count, at = read_number(body, 0)
                body = number_bytes(count + 1) + body[at:] + number_bytes(len(NAME)) + NAME + b"\x01\x00"
        made += bytes([number]) + number_bytes(len(body)) + body
    return bytes(made)


def _without_maximum(body: bytes) -> bytes:
    count, at = read_number(body, 0)
    if count != 1 or body[at] != 0x70 or body[at + 1] != 1:
        raise ValueError("the module's table is not one table of functions with a maximum")
    least, _ = read_number(body, at + 2)
    return number_bytes(1) + b"\x70\x00" + number_bytes(least)


def sections(module: bytes) -> Iterator[tuple[int, bytes]]:
    at = _HEAD
    while at < len(module):
        number = module[at]
        length, at = read_number(module, at + 1)
        yield number, module[at : at + length]
        at += length


def read_number(data: bytes, at: int) -> tuple[int, int]:
    """A number as WebAssembly writes it (LEB128), and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def number_bytes(value: int) -> bytes:
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*made, value])
