"""Reads the text of a sed script piece by piece, and says where in it an error is."""

from __future__ import annotations

from belljar.abi.dataclass import dataclass

_MAX_NUMBER = 10**15


class ScriptError(Exception):
    """A script that does not parse; the text is complete but for the program's name."""

    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Source:
    """One -e or -f; the script is all of them, joined by newlines."""

    text: str
    file: str | None = None


@dataclass(frozen=True, slots=True)
class Syntax:
    extended: bool = False
    posix: bool = False
    sandbox: bool = False
    utf8: bool = True
    null_data: bool = False


class Reader:
    """A cursor over all pieces of a script."""

    def __init__(self, sources: list[Source]) -> None:
        self.sources = sources
        self.text = "\n".join(source.text for source in sources)
        self.pos = 0

    def fail(self, message: str, at: int | None = None) -> ScriptError:
        """The error `message` at a position (by default what has been read)."""
        pos = self.pos if at is None else at
        begin = expressions = 0
        for index, source in enumerate(self.sources):
            expressions += source.file is None
            if pos <= begin + len(source.text) or index == len(self.sources) - 1:
                break
            begin += len(source.text) + 1
        if source.file is not None:
            line = self.text.count("\n", begin, pos) + 1
            return ScriptError(f"file {source.file} line {line}: {message}")
        return ScriptError(f"-e expression #{expressions}, char {pos - begin}: {message}")

    def peek(self) -> str:
        return self.text[self.pos] if self.pos < len(self.text) else ""

    def next(self) -> str:
        char = self.peek()
        self.pos += len(char)
        return char

    def skip_blanks(self) -> str:
        while self.peek() in " \t" and self.peek():
            self.pos += 1
        return self.peek()

    def number(self) -> int:
        start = self.pos
        while self.peek().isdecimal() and self.peek().isascii():
            self.pos += 1
        return min(int(self.text[start : self.pos][:18] or "0"), _MAX_NUMBER)

    def end_of_command(self) -> None:
        char = self.skip_blanks()
        if char in ("}", "#", ""):
            return
        self.pos += 1
        if char not in ("\n", ";"):
            raise self.fail("extra characters after command")

    def word(self, stops: str) -> str:
        start = self.pos
        while self.peek() and self.peek() not in stops:
            self.pos += 1
        return self.text[start : self.pos]

    def word_of(self, letters: str) -> str:
        start = self.pos
        while self.peek() and self.peek() in letters:
            self.pos += 1
        return self.text[start : self.pos]

    def delimited(self, delimiter: str, *, is_pattern: bool) -> str | None:
        """Text up to an unescaped delimiter; in a pattern, one inside brackets does not count."""
        out: list[str] = []
        text = self.text
        while self.pos < len(text):
            char = text[self.pos]
            if char == delimiter:
                self.pos += 1
                return "".join(out)
            if char == "\n":
                return None
            self.pos += 1
            if char == "[" and is_pattern:
                bracket = self.bracket()
                if bracket is None:
                    return None
                out.append(bracket)
                continue
            if char != "\\":
                out.append(char)
                continue
            if self.pos >= len(text):
                return None
            char = text[self.pos]
            self.pos += 1
            if char == delimiter:
                out.append("\\&" if char == "&" and not is_pattern else char)
            elif char == "\n" and is_pattern:
                out.append("\n")
            else:
                out.append("\\" + char)
        return None

    def bracket(self) -> str | None:
        """Read a bracket expression after its `[`; None if it does not end on this line."""
        text, start = self.text, self.pos
        pos = start
        if text.startswith("^", pos):
            pos += 1
        if text.startswith("]", pos):
            pos += 1
        while pos < len(text) and text[pos] != "\n":
            if text[pos] == "]":
                self.pos = pos + 1
                return "[" + text[start : self.pos]
            if text[pos] == "[" and text[pos + 1 : pos + 2] in (":", ".", "="):
                close = text.find(text[pos + 1] + "]", pos + 2)
                if close >= 0:
                    pos = close + 2
                    continue
            pos += 1
        self.pos = pos
        return None
