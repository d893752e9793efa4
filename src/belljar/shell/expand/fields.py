"""Builds the fields of a word out of literal, quoted and expanded pieces: splitting, then pathname expansion."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from belljar.libc.pattern import escape

if TYPE_CHECKING:
    from belljar.shell.shell import Shell

FIELD_BYTES = 32
"""Bytes that one field of a very long list counts for in the limit on expansions."""
MAGIC = re.compile(r"[*?\[]|[+@!]\(")
"""Text that might be a glob."""


class Fields:
    """The fields of one word under construction, appended to `out` as they end."""

    __slots__ = ("glob", "has", "magic", "out", "pattern", "pending", "shell", "text")

    def __init__(self, shell: Shell, out: list[str], *, glob: bool = True) -> None:
        self.shell = shell
        self.out = out
        self.glob = glob
        self.text = ""
        self.pattern = ""
        self.pending = ""
        self.has = False
        self.magic = False

    def literal(self, text: str) -> None:
        """Unquoted text of the script: never split, but its pattern characters are active."""
        if self.pending:
            self._split()
        self.text += text
        self.pattern += text
        self.has = True
        if not self.magic and MAGIC.search(text):
            self.magic = True

    def quoted(self, text: str) -> None:
        if self.pending:
            self._split()
        self.text += text
        self.pattern += escape(text)
        self.has = True

    def expanded(self, text: str) -> None:
        """The result of an unquoted expansion. Neighbours are split as one text."""
        self.pending += text

    def elements(self, values: list[str], *, quoted: bool) -> None:
        """The values of "$@" or $@ and their kin: each begins a new field, the first and last join what is around."""
        if quoted:
            first = True
            for value in values:
                if not first:
                    self._end_field()
                first = False
                self.quoted(value)
            return
        ifs = self.shell.ifs
        separates = bool(ifs.joiner) and ifs.joiner not in ifs.whitespace
        first = True
        for value in values:
            if not first:
                self.flush()
                if self.has or separates:
                    self._end_field()
            first = False
            self.expanded(value)

    def flush(self) -> None:
        if self.pending:
            self._split()

    def end(self) -> None:
        """The word is over."""
        if self.pending:
            self._split()
        if self.has:
            self._end_field()

    def _split(self) -> None:
        text, self.pending = self.pending, ""
        delimiter = self.shell.ifs.delimiter
        if delimiter is None:
            self._add(text)
            return
        start = 0
        out = self.out
        for match in delimiter.finditer(text):
            if match.start() > start:
                self._add(text[start : match.start()])
            start = match.end()
            if self.has or match.group(1):
                self._end_field()
                if not len(out) & 0xFFF:
                    self.shell.budget.charge(len(out) & 0xFFFF)
                    self.shell.budget.charge_size(len(out) * FIELD_BYTES)
        if start < len(text):
            self._add(text[start:])

    def _add(self, text: str) -> None:
        self.text += text
        self.pattern += text
        self.has = True
        if not self.magic and MAGIC.search(text):
            self.magic = True

    def _end_field(self) -> None:
        text, pattern = self.text, self.pattern
        if self.magic and self.glob and not self.shell.noglob:
            self.out += self.shell.expand_glob(pattern, text)
        else:
            self.out.append(text)
        self.text = self.pattern = ""
        self.has = self.magic = False
