"""TOML of strangers: what is involved beyond measure is refused before it costs anything."""

from __future__ import annotations

import pytest

from belljar.libc.toml import TomlError, parse_toml


def test_what_people_write_is_read() -> None:
    assert parse_toml('a = [[1]]\n[b.c]\nd = {e = "f"}\n[[g]]\n') == {
        "a": [[1]],
        "b": {"c": {"d": {"e": "f"}}},
        "g": [{}],
    }
    script = "./a.b; " * 1000
    assert parse_toml(f"command = \"{script}\"\nother = '{script}'")["other"] == script


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = ", "this is no TOML"),
        ("a" + ".a" * 100_000 + " = 1", "more than 200 dots"),
        ('"=\u2028"' + '."\u2028"' * 100_000 + " = 1", "more than 200 dots"),
        ("'x'" + " . 'x'" * 100_000 + " = 1", "more than 200 dots"),
        ('"' + '\\"' * 100_000, "this is no TOML"),
        ("[a" + ".a" * 60_000 + "]\n" + "".join(f"b{n} = 1\n" for n in range(20_000)), "more than 200 dots"),
        ("a = " + "[" * 100_000, "this is no TOML"),
        ("a = " + "[" * 300 + "]" * 300, "more than 16 deep"),
        ("a = " + "{b = " * 100 + "1" + "}" * 100, "more than 16 deep"),
        ("a" + ".a" * 150 + " = 1", "more than 16 deep"),
    ],
)
def test_what_nobody_writes_is_refused(text: str, said: str) -> None:
    with pytest.raises(TomlError, match=said):
        parse_toml(text)
