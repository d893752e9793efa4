"""Here-documents: their delimiters, and their bodies, which follow the line they are announced on."""

from __future__ import annotations

import re

from msgspec.structs import force_setattr

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


class HereDocReader(ParamReader):
    """Adds here-documents to the words."""

    def __init__(self, source: str | Reader, options: ParseOptions | None = None, first_line: int = 1) -> None:
        super().__init__(source, options, first_line)
        self.pending: list[HereDoc] = []
        self.inside = 0
        """Nesting depth of the substitutions being read."""

    def announce(self, fd: int | FdVariable, *, strip_tabs: bool) -> HereDoc:
        """The here-document whose delimiter is the word at `pos`; its body is read at the next newline."""
        start = self.pos
        line = self.line_at(start)
        quoted = any(isinstance(part, QUOTED) for part in self.read_parts())
        source = self.text[start : self.pos]
        delimiter = unquote_delimiter(source) if quoted else source
        doc = HereDoc(fd, delimiter, quoted, strip_tabs, "", Word(()), line)
        self.pending.append(doc)
        return doc

    def read_pending(self) -> None:
        """Read the bodies of the here-documents announced; `pos` is at the start of a line."""
        pending, self.pending = self.pending, []
        for doc in pending:
            text = self._body(doc, self.line_at(self.pos) - 1)
            # The node was needed before its body could be known; nobody has seen it unfinished.
            force_setattr(doc, "text", text)
            force_setattr(doc, "body", self._parse_body(doc, text))

    def _body(self, doc: HereDoc, line: int) -> str:
        start = place = self.pos
        while True:
            found = self._find_line(doc, place)
            if found < 0:
                place = max(place, self.text.rfind("\n") + 1)
                if not self.fill(doc.delimiter + "\n"):
                    end = self.pos = len(self.text)
                    self._warn(doc, line, end - (1 if self.text.endswith("\n") else 0))
                    break
                continue
            newline = self.text.find("\n", found)
            after = newline + 1 if newline >= 0 else len(self.text)
            closed = self._closed(doc, found, after) if self.inside else 0
            if closed:
                end, self.pos = found, closed
                self._warn(doc, line, found)
                break
            if doc.quoted or not self._continued(start, found):
                end = found
                self.pos = after
                break
            place = after
        body = self.text[start:end]
        if not doc.quoted and "\\\n" in body:
            body = CONTINUATION.sub(r"\1", body)
        return TABS.sub("", body) if doc.strip_tabs else body

    def _find_line(self, doc: HereDoc, place: int) -> int:
        """The start of the first line, at or after the line start `place`, that is the delimiter; -1 if none is.

        In a substitution the delimiter may have its closing parenthesis right behind it, or anywhere in that line.
        """
        if self.inside:
            tabs = r"\t*" if doc.strip_tabs else ""
            match = re.compile(rf"^{tabs}{re.escape(doc.delimiter)}(?:$|.*\))", re.MULTILINE).search(self.text, place)
            return match.start() if match else -1
        if doc.strip_tabs:
            ending = re.compile(rf"^\t*{re.escape(doc.delimiter)}$", re.MULTILINE)
            match = ending.search(self.text, place)
            return match.start() if match else -1
        delimiter, text = doc.delimiter, self.text
        size = len(delimiter)
        if text.startswith(delimiter, place) and text[place + size : place + size + 1] in ("\n", ""):
            return place if size or place < len(text) else -1
        found = text.find(f"\n{delimiter}\n", place)
        if found < 0 and size and text.endswith("\n" + delimiter) and len(text) - size > place:
            found = len(text) - size - 1
        return found + 1 if found >= 0 else -1

    def _closed(self, doc: HereDoc, found: int, after: int) -> int:
        """The end of the delimiter in the line found:after, if more than a newline follows it; else 0."""
        end = found
        while doc.strip_tabs and self.text.startswith("\t", end):
            end += 1
        end += len(doc.delimiter)
        return end if self.text[end:after].rstrip("\n") else 0

    def _continued(self, start: int, line_start: int) -> bool:
        """Whether the line before `line_start` ends in a backslash that joins the two."""
        end = line_start - 1
        place = end
        while place > start and self.text[place - 1] == "\\":
            place -= 1
        return (end - place) % 2 == 1

    def _warn(self, doc: HereDoc, line: int, pos: int) -> None:
        at = self.line_at(pos)
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
        reader.keeps_source = True
        reader.enter()
        try:
            return Word(reader.within(reader.read_context(HEREDOC, "", 0), 0))
        except ShellSyntaxError:
            # Bash looks into the body only when it expands it.
            return Word((BadSubstitution(text),))
