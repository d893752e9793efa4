"""Here-documents: their delimiters, and their bodies, which follow the line they are announced on."""

from __future__ import annotations

import re
from dataclasses import dataclass

from belljar.shell.nodes import (
    AnsiQuoted,
    BadSubstitution,
    DoubleQuoted,
    Escaped,
    FdVariable,
    HereDoc,
    Literal,
    LocaleQuoted,
    SingleQuoted,
    Word,
)
from belljar.shell.parse.ansi import decode_ansi
from belljar.shell.parse.errors import ShellSyntaxError, Warned
from belljar.shell.parse.params import ParamReader
from belljar.shell.parse.source import ParseOptions, Reader
from belljar.shell.parse.words import HEREDOC

QUOTING = re.compile(r"\$'((?:[^'\\]|\\.)*)'|\$?\"((?:[^\"\\]|\\.)*)\"|'([^']*)'|\\(.)", re.DOTALL)
QUOTED_ESCAPE = re.compile(r"\\([$`\"\\\n])")
#: A backslash-newline that isn't itself escaped.
CONTINUATION = re.compile(r"(?<!\\)((?:\\\\)*)\\\n")
TABS = re.compile(r"^\t+", re.MULTILINE)
QUOTED = (Escaped, SingleQuoted, AnsiQuoted, DoubleQuoted, LocaleQuoted)
ACTIVE = re.compile(r"[$`\\]")


def unquote_delimiter(source: str) -> str:
    """The delimiter without its quotes."""

    def bare(match: re.Match[str]) -> str:
        ansi, double, single, escaped = match.groups()
        if ansi is not None:
            return decode_ansi(ansi)
        if double is not None:
            return QUOTED_ESCAPE.sub(r"\1", double)
        text = single if single is not None else escaped
        return "" if text == "\n" else text

    return QUOTING.sub(bare, source)


@dataclass(slots=True)
class Pending:
    """A here-document whose body hasn't been read yet."""

    doc: HereDoc
    line: int


class HereDocReader(ParamReader):
    """Adds here-documents to the words."""

    def __init__(self, source: str | Reader, options: ParseOptions | None = None, first_line: int = 1) -> None:
        super().__init__(source, options, first_line)
        self.pending: list[Pending] = []

    def announce(self, fd: int | FdVariable, *, strip_tabs: bool) -> HereDoc:
        """The here-document whose delimiter is the word at `pos`; its body is read at the next newline."""
        start = self.pos
        line = self.line_at(start)
        quoted = any(isinstance(part, QUOTED) for part in self.read_parts())
        source = self.text[start : self.pos]
        delimiter = unquote_delimiter(source) if quoted else source
        doc = HereDoc(fd, delimiter, quoted, strip_tabs, "", Word(()), line)
        self.pending.append(Pending(doc, line))
        return doc

    def read_pending(self) -> None:
        """Read the bodies of the here-documents announced; `pos` is at the start of a line."""
        pending, self.pending = self.pending, []
        for waiting in pending:
            doc = waiting.doc
            text = self._body(doc, waiting.line)
            # The node was needed before its body could be known; nobody has seen it unfinished.
            object.__setattr__(doc, "text", text)
            object.__setattr__(doc, "body", self._parse_body(doc, text))

    def _body(self, doc: HereDoc, line: int) -> str:
        start = self.pos
        tabs = "\t*" if doc.strip_tabs else ""
        ending = re.compile(rf"^{tabs}{re.escape(doc.delimiter)}$(?:\n|\Z)", re.MULTILINE)
        place = start
        while True:
            match = ending.search(self.text, place)
            if match is None:
                place = max(place, self.text.rfind("\n", start, len(self.text)) + 1)
                if not self.fill(doc.delimiter + "\n"):
                    end = self.pos = len(self.text)
                    self._warn(doc, line)
                    break
                continue
            if doc.quoted or not self._continued(start, match.start()):
                end = match.start()
                self.pos = match.end()
                break
            place = match.end()
        body = self.text[start:end]
        if not doc.quoted and "\\\n" in body:
            body = CONTINUATION.sub(r"\1", body)
        return TABS.sub("", body) if doc.strip_tabs else body

    def _continued(self, start: int, line_start: int) -> bool:
        """Whether the line before `line_start` ends in a backslash that joins the two."""
        end = line_start - 1
        place = end
        while place > start and self.text[place - 1] == "\\":
            place -= 1
        return (end - place) % 2 == 1

    def _warn(self, doc: HereDoc, line: int) -> None:
        at = self.line_at(len(self.text)) - (1 if self.text.endswith("\n") else 0)
        self.warnings.append(
            Warned(at, f"here-document at line {line} delimited by end-of-file (wanted `{doc.delimiter}')")
        )

    def _parse_body(self, doc: HereDoc, text: str) -> Word:
        if not text:
            return Word(())
        if doc.quoted or not ACTIVE.search(text):
            return Word((Literal(text),))
        reader = type(self)(text, self.options, (doc.line or 1) + 1)
        reader.depth = self.depth
        reader.enter()
        try:
            return Word(reader.read_context(HEREDOC, "", 0))
        except ShellSyntaxError:
            # Bash looks into the body only when it expands it.
            return Word((BadSubstitution(text),))
