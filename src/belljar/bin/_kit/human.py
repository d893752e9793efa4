"""Sizes for people: 4.0K, 12M; and the block sizes that ls, du and df count in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from belljar.abi.dataclass import dataclass
from belljar.bin._kit.sizes import unit

_UNITS: Final = "KMGTPEZYRQ"
_BLOCK: Final = re.compile(r"(')?(\d*)([kKmMgGtTpPeEzZyYrRqQ](?:i?B)?|B)?")


def human(value: int, base: int = 1024) -> str:
    """Rounded up to at most two digits and one decimal, or three digits."""
    if value < base:
        return str(value)
    power = 1
    while value >= base ** (power + 1):
        power += 1
    while True:
        scale = base**power
        tenths = -(-value * 10 // scale)
        whole = -(-value // scale)
        text = f"{tenths // 10}.{tenths % 10}" if tenths < 100 else str(whole)
        if tenths < 100 or whole < base or power == len(_UNITS):
            break
        power += 1
    letter = _UNITS[power - 1]
    return text + (letter.lower() if base == 1000 and letter == "K" else letter)


@dataclass(frozen=True, slots=True)
class BlockSize:
    """A unit of sizes: so many bytes with a suffix behind, or (size 0) human-readable."""

    size: int
    suffix: str = ""
    base: int = 1024
    grouped: bool = False

    def show(self, value: int) -> str:
        """A number of bytes, rounded up."""
        if self.size == 0:
            return human(value, self.base)
        return f"{-(-value // self.size)}{self.suffix}"


HUMAN: Final = BlockSize(0)
SI: Final = BlockSize(0, base=1000)


def parse_block_size(text: str) -> BlockSize | None:
    """None if it is no block size."""
    if text in ("human-readable", "human"):
        return HUMAN
    if text == "si":
        return SI
    match = _BLOCK.fullmatch(text)
    if match is None or not (match[2] or match[3]):
        return None
    suffix = match[3] or ""
    size = int((match[2] or "1")[:40]) * unit(suffix[:1].upper() + suffix[1:] if suffix else "")
    if size == 0:
        return None
    shown = ""
    if not match[2]:
        shown = suffix if suffix == "kB" or len(suffix) > 1 else suffix.upper()
    return BlockSize(size, shown, grouped=bool(match[1]))


def bad_block_size(option: str, text: str) -> str:
    """Return GNU's message for an invalid block size."""
    what = "invalid suffix in" if re.match(r"\d|[kKmMgGtTpPeEzZyYbB]", text) else "invalid"
    return f"{what} {option} argument '{text}'"


def default_block_size(env: Mapping[str, str], *names: str) -> BlockSize:
    """Read the environment: the program's own variable, then BLOCK_SIZE, BLOCKSIZE; 1024, or 512 as POSIX has it."""
    for name in (*names, "BLOCK_SIZE", "BLOCKSIZE"):
        if name in env:
            found = parse_block_size(env[name])
            if found is not None:
                return found
    return BlockSize(512 if "POSIXLY_CORRECT" in env else 1024)
