"""Byte tables shared by the dumpers xxd and hexdump."""

from typing import Final

HEX: Final = tuple(f"{byte:02x}" for byte in range(256))
DOTS: Final = bytes(byte if 32 <= byte < 127 else 46 for byte in range(256))
