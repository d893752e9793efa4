"""What is done to the engine's module: its table opened, the rest as it was."""

from __future__ import annotations

import pytest

from belljar.engines.owner.quickjs_open_table import NAME, number_bytes, open_table, read_number, sections

HEAD = b"\0asm\1\0\0\0"
MODULE = HEAD + bytes.fromhex("0405 0170 01 0303") + bytes.fromhex("0705 01 0161 0000") + bytes.fromhex("0a02 aabb")


@pytest.mark.parametrize("number", [0, 1, 127, 128, 609, 1 << 31])
def test_numbers_round_trip(number: int) -> None:
    data = number_bytes(number)
    assert read_number(b"x" + data + b"y", 1) == (number, 1 + len(data))


def test_the_table_is_opened_and_named() -> None:
    made = dict(sections(open_table(MODULE)))
    assert made[4] == bytes.fromhex("0170 00 03")
    assert made[7] == bytes.fromhex("02 0161 0000") + bytes([len(NAME)]) + NAME + b"\1\0"
    assert made[10] == b"\xaa\xbb"


def test_another_kind_of_table_is_refused() -> None:
    with pytest.raises(ValueError, match="not one table of functions"):
        open_table(HEAD + bytes.fromhex("0404 0170 0003"))
