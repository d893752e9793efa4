"""Reads records from a byte source by RS, a big chunk at a time."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from typing import Final, Protocol

from belljar.bin.awk.patterns import compile_pattern
from belljar.bin.awk.record import ODD_SPACES

CHUNK = 1 << 18
_DECODERS: Final = {name: codecs.getincrementaldecoder(name) for name in ("utf-8", "latin-1")}
"""Looked up now: a sealed worker can't load the module of an encoding."""

_ODD_ASCII = tuple(char.encode() for char in ODD_SPACES if char < "\x80")
_ODD_OTHER = tuple(char for char in ODD_SPACES if char >= "\x80")


class Source(Protocol):
    """Source of bytes: `read` returns up to `size` of them, none at the end."""

    def read(self, size: int) -> bytes: ...

    def close(self) -> None: ...


class Separator:
    """A parsed RS. kind: "char" (text), "paragraph" or "regex"."""

    __slots__ = ("ignore_case", "kind", "text")

    def __init__(self, text: str, ignore_case: bool = False) -> None:
        self.text = text
        self.ignore_case = ignore_case
        if text == "":
            self.kind = "paragraph"
        elif len(text) == 1 and not (ignore_case and text.isalpha()):
            self.kind = "char"
        else:
            self.kind = "regex"


class Reader:
    """The records of one source. `records` is the iterator over those already read; it may be shared by a loop
    and by getline, because both only ever take the next one."""

    def __init__(
        self,
        source: Source,
        separator: Separator,
        encoding: str,
        charge: Callable[[int], None],
        charge_size: Callable[[int], None],
    ) -> None:
        self.source = source
        self.separator = separator
        self.decoder = _DECODERS[encoding]("surrogateescape")
        self.charge = charge
        self.charge_size = charge_size
        self.records: Iterator[str] = iter(())
        self.terminators: list[str] | None = None
        self.total = 0
        self.tail = ""
        self.rescan = False
        self.ended = False
        self.started = False
        self.plain = True
        """No character of the current chunk is one that str.split() would wrongly take for a blank."""

    def next(self) -> str | None:
        """The next record, or None at the end."""
        for text in self.records:
            return text
        while self.refill():
            for text in self.records:
                return text
        return None

    def refill(self) -> bool:
        """Read until at least one more record is there; False at the end."""
        text = self.tail
        self.tail = ""
        rescan, self.rescan = self.rescan, False
        while True:
            if not rescan:
                if self.ended:
                    return False
                text += self._read_on(len(text))
            rescan = False
            found, self.terminators, rest = self._cut(text)
            if found:
                self.tail = rest
                self.total = len(found)
                self.records = iter(found)
                self.charge(len(found))
                return True
            if self.ended:
                return False
            text = rest

    def _read_on(self, have: int) -> str:
        """At least one more chunk; doubling, so that one endless record costs linear time."""
        chunk = self._read(have > 0)
        if have <= CHUNK:
            return chunk
        parts = [chunk]
        got = len(chunk)
        separator = self.separator
        while not self.ended and got < have and not (separator.kind == "char" and separator.text in parts[-1]):
            self.charge_size(have + got)
            parts.append(self._read(True))
            got += len(parts[-1])
        return "".join(parts)

    def _read(self, continued: bool) -> str:
        data = self.source.read(CHUNK)
        if not data:
            self.ended = True
            return self.decoder.decode(b"", True)
        text = self.decoder.decode(data)
        plain = True
        for odd in _ODD_ASCII:
            if odd in data:
                plain = False
                break
        if plain and not data.isascii():
            for other in _ODD_OTHER:
                if other in text:
                    plain = False
                    break
        self.plain = plain and (self.plain or not continued)
        return text

    def _cut(self, text: str) -> tuple[list[str], list[str] | None, str]:
        """The complete records in `text`, their terminators (None: all are RS itself), and what is left."""
        kind = self.separator.kind
        if kind == "char":
            found = text.split(self.separator.text)
            rest = found.pop()
            if rest and self.ended:
                found.append(rest)
                return found, [self.separator.text] * (len(found) - 1) + [""], ""
            return found, None, rest
        if kind == "paragraph":
            return self._cut_paragraphs(text)
        return self._cut_pattern(text)

    def _cut_paragraphs(self, text: str) -> tuple[list[str], list[str] | None, str]:
        text = text.lstrip("\n")
        found: list[str] = []
        terminators: list[str] = []
        at = 0
        while (cut := text.find("\n\n", at)) >= 0:
            end = cut + 2
            while end < len(text) and text[end] == "\n":
                end += 1
            if end == len(text) and not self.ended:
                break
            found.append(text[at:cut])
            terminators.append(text[cut:end])
            at = end
        rest = text[at:]
        if self.ended and rest:
            body = rest[:-1] if rest.endswith("\n") else rest
            found.append(body)
            terminators.append(rest[len(body) :])
            rest = ""
        return found, terminators, rest

    def _cut_pattern(self, text: str) -> tuple[list[str], list[str] | None, str]:
        pattern = compile_pattern(self.separator.text, self.separator.ignore_case)
        found: list[str] = []
        terminators: list[str] = []
        at = 0
        spans = pattern.spans(text)
        if self.started and "^" in self.separator.text:
            # This is not the beginning of the input, whatever the pattern may think of the text's.
            spans = [(start - 1, end - 1) for start, end in pattern.spans("\0" + text) if start]
        self.started = True
        for start, end in spans:
            if start == end:
                continue
            if end == len(text) and not self.ended:
                break
            found.append(text[at:start])
            terminators.append(text[start:end])
            at = end
        rest = text[at:]
        if self.ended and rest:
            found.append(rest)
            terminators.append("")
            rest = ""
        return found, terminators, rest

    def remaining_terminator(self) -> str:
        """The text that ended the record last taken."""
        if self.terminators is None:
            return self.separator.text
        left = self.records.__length_hint__()  # type: ignore[attr-defined]
        index = self.total - left - 1
        return self.terminators[index] if 0 <= index < len(self.terminators) else ""

    def change_separator(self, separator: Separator) -> None:
        """RS was assigned: put back what has been cut but not taken, to be cut anew."""
        rest = list(self.records)
        if rest:
            if self.terminators is None:
                ends = [self.separator.text] * len(rest)
            else:
                ends = self.terminators[len(self.terminators) - len(rest) :]
            self.tail = "".join([part for pair in zip(rest, ends, strict=True) for part in pair]) + self.tail
        self.records = iter(())
        self.terminators = None
        self.total = 0
        self.separator = separator
        self.started = True
        self.rescan = True

    def close(self) -> None:
        self.source.close()
