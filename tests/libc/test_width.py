"""Widths of characters that wcwidth(3) of glibc 2.36 was asked for in C.UTF-8."""

import pytest

from belljar.libc.width import character_width, display_width


@pytest.mark.parametrize(
    ("chars", "width"),
    [
        ("aé\u00a0\u00ad\u0600\u06dd\u070f\U000110bd", 1),
        ("\u0301\u20dd\u200b\u200d\ufeff\u1160\u11ff\ud7b0", 0),
        ("日가\u1100\uff21\u3000\u3248\u4dc0\U0001f600", 2),
    ],
)
def test_width(chars: str, width: int) -> None:
    assert [character_width(char) for char in chars] == [width] * len(chars)


def test_width_of_a_text() -> None:
    assert display_width("e\u0301 日本") == 6
