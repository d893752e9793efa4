"""Keys: from bytes typed to the names of editing functions, by the bindings Readline has and `bind` changes."""

from __future__ import annotations

import re
from codecs import getincrementaldecoder
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final, NamedTuple

from belljar.shell.readline_names import FUNCTIONS, KEYS

_NOTATION: Final = re.compile(r"\\(?:C-(\\?.)|M-|([0-7]{1,3})|x([0-9a-fA-F]{1,2})|(.))", re.DOTALL)
_PLAIN: Final = {"e": "\x1b", "n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b", "d": "\x7f", "f": "\f", "v": "\v"}
_CSI: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*([@-~])?|O(.)?)$", re.DOTALL)


class Stroke(NamedTuple):
    """One thing the user did: the function it means, and the keys it was typed with."""

    function: str
    keys: str


def parse_keys(notation: str) -> str:
    r"""Decode Readline's notation (`\C-x\C-e`, `\e[A`, `\M-b`) to the characters typed."""

    def decode(match: re.Match[str]) -> str:
        control, octal, hexadecimal, other = match.groups()
        if control is not None:
            letter = control[-1]
            return "\x7f" if letter == "?" else chr(ord(letter.lower()) & 0x1F)
        if octal is not None:
            return chr(int(octal, 8))
        if hexadecimal is not None:
            return chr(int(hexadecimal, 16))
        return _PLAIN.get(other, other) if other is not None else "\x1b"

    return _NOTATION.sub(decode, notation)


@cache
def standard_keymap() -> dict[str, str]:
    """The function of each key sequence."""
    return {
        parse_keys(keys): name
        for name, sequences in KEYS.items()
        for keys in sequences
        if name not in ("self-insert", "do-lowercase-version")
    }


@cache
def vi_keymap() -> dict[str, str]:
    """The keymap of vi's insert mode; the module `vi` has that of command mode."""
    sequences = {keys: name for keys, name in standard_keymap().items() if keys.startswith(("\x1b[", "\x1bO"))}
    return sequences | {
        "\x04": "vi-eof-maybe", "\x08": "backward-delete-char", "\t": "complete", "\n": "accept-line",
        "\r": "accept-line", "\x12": "reverse-search-history", "\x13": "forward-search-history",
        "\x14": "transpose-chars", "\x15": "unix-line-discard", "\x16": "quoted-insert",
        "\x17": "vi-unix-word-rubout", "\x19": "yank", "\x1b": "vi-movement-mode", "\x1f": "undo",
        "\x7f": "backward-delete-char",
    }  # fmt: skip


def keymap(bindings: Mapping[str, str], *, vi: bool = False) -> dict[str, str]:
    """The standard one with what `bind` changed: function names, or `"text"` to type."""
    changed = dict(vi_keymap() if vi else standard_keymap())
    for keys, meaning in bindings.items():
        if meaning in FUNCTIONS or meaning.startswith(('"', "'")):
            changed[parse_keys(keys)] = meaning
    return changed


class Decoder:
    """Groups what is typed into strokes; a sequence that isn't complete waits for the rest."""

    def __init__(self, bindings: Mapping[str, str], *, vi: bool = False) -> None:
        self._map = keymap(bindings, vi=vi)
        self._vi = vi
        self._prefixes = {keys[:size] for keys in self._map for size in range(1, len(keys))}
        self._bytes = getincrementaldecoder("utf-8")("surrogateescape")
        self._waiting = ""
        self.literal = False
        """The next key means itself (^V)."""
        self.verbatim = False
        """Every key means itself (while pasting)."""

    def feed(self, data: bytes) -> Iterator[Stroke]:
        yield from self._group(self._bytes.decode(data))
        if self._vi and self._waiting == "\x1b":
            # Vi's Escape is a key of its own; a terminal sends its sequences whole.
            self._waiting = ""
            yield Stroke(self._map["\x1b"], "\x1b")

    def _group(self, typed: str) -> Iterator[Stroke]:
        for char in typed:
            if self.literal or self.verbatim:
                self.literal = False
                yield Stroke("self-insert", char)
                continue
            keys = self._waiting + char
            self._waiting = ""
            function = self._map.get(keys)
            if keys in self._prefixes:
                self._waiting = keys
            elif function is not None:
                yield Stroke(function, keys)
            elif len(keys) > 1:
                yield from self._unknown(keys)
            elif self._vi or (char >= " " and char != "\x7f"):
                yield Stroke("self-insert", char)

    def _unknown(self, keys: str) -> Iterator[Stroke]:
        """A sequence nothing is bound to: taken whole if it is a terminal's, so that its rest isn't inserted."""
        found = _CSI.match(keys)
        if found is not None and not any(found.groups()):
            self._waiting = keys
        elif found is None and keys[:-1] in self._map:
            yield Stroke(self._map[keys[:-1]], keys[:-1])
            yield from self._group(keys[-1])
