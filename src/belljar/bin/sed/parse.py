"""Parses sed scripts; errors name the place as GNU sed does."""

from __future__ import annotations

import re

from belljar import regex
from belljar.bin.sed.escapes import EscapeError, convert, in_pattern, in_text, join_bytes
from belljar.bin.sed.reader import Reader, ScriptError, Source, Syntax
from belljar.bin.sed.script import (
    Address,
    CaseChange,
    Command,
    Last,
    LineNumber,
    Multiple,
    Part,
    Pattern,
    Plus,
    Reference,
    Script,
    Step,
    Substitution,
)

_NO_ARGUMENT = frozenset("=dDFgGhHnNpPxz")
_ONE_ADDRESS = frozenset("qQ")


def parse(sources: list[Source], syntax: Syntax) -> Script:
    return _Parser(sources, syntax).run()


def version_key(text: str) -> list[tuple[str, int]]:
    """For comparing versions: by characters, runs of digits by value."""
    return [("0", int(part[:18])) if part.isdecimal() else (part, 0) for part in re.findall("[0-9]+|[^0-9]", text)]


class _Parser(Reader):
    def __init__(self, sources: list[Source], syntax: Syntax) -> None:
        super().__init__(sources)
        self.syntax = syntax
        self.commands: list[Command] = []
        self.blocks: list[int] = []
        self.labels: dict[str, int] = {}
        self.quiet = False

    # -- the script

    def run(self) -> Script:
        self.quiet = self.text.startswith("#n")
        while True:
            while self.peek() and (self.peek() == ";" or self.peek().isspace()):
                self.pos += 1
            if not self.peek():
                break
            self.command()
        if self.blocks:
            raise self.fail("unmatched `{'", at=self.start_of_source())
        self.resolve_labels()
        return Script(self.commands, self.quiet)

    def start_of_source(self) -> int:
        """GNU reports an open block at char 0 of the last expression."""
        return len(self.text) - len(self.sources[-1].text)

    def resolve_labels(self) -> None:
        for command in self.commands:
            if command.name in "btT":
                if command.label and command.label not in self.labels:
                    raise ScriptError(f"can't find label for jump to `{command.label}'", 4)
                command.target = self.labels.get(command.label, len(self.commands))

    def command(self) -> None:
        command = Command("")
        command.first = self.address(leading=True)
        if command.first is None:
            self.skip_blanks()
        else:
            if isinstance(command.first, Plus | Multiple):
                raise self.fail("invalid usage of +N or ~N as first address")
            if self.skip_blanks() == ",":
                self.pos += 1
                self.skip_blanks()
                command.second = self.address(leading=False)
                if command.second is None:
                    self.next()
                    raise self.fail("unexpected `,'")
                self.skip_blanks()
        char = self.next()
        before_first = char == "r" and command.second is None
        if (
            command.first == LineNumber(0)
            and not before_first
            and not (isinstance(command.second, Pattern) and not self.syntax.posix)
        ):
            raise self.fail("invalid usage of line address 0")
        if char == "!":
            command.negated = True
            self.skip_blanks()
            char = self.next()
            if char == "!":
                raise self.fail("multiple `!'s")
        if not char:
            raise self.fail("missing command")
        command.name = char
        self.body(command)

    def body(self, command: Command) -> None:
        name = command.name
        if name == "#":
            if command.first is not None:
                raise self.fail("comments don't accept any addresses")
            end = self.text.find("\n", self.pos)
            self.pos = len(self.text) if end < 0 else end
            return
        if name == "}":
            self.close_block(command)
            return
        if name == ":":
            self.define_label(command)
            return
        if name in _ONE_ADDRESS and command.second is not None:
            raise self.fail("command only uses one address")
        if name in _NO_ARGUMENT:
            self.end_of_command()
        elif name == "{":
            self.blocks.append(len(self.commands))
        elif name in "aic":
            command.text = self.appended_text()
        elif name in "btT":
            command.label = self.label()
        elif name in "rRwW":
            command.filename = self.filename()
        elif name in "qQl":
            if self.skip_blanks().isdecimal():
                command.number = self.number()
            self.end_of_command()
        elif name == "s":
            command.substitution = self.substitution()
        elif name == "y":
            self.transliteration(command)
        elif name == "v":
            self.version()
            return
        elif name == "e":
            raise self.fail("the `e' command is not available in this sandbox")
        else:
            raise self.fail(f"unknown command: `{name}'")
        self.commands.append(command)

    def close_block(self, command: Command) -> None:
        if not self.blocks:
            raise self.fail("unexpected `}'")
        if command.first is not None:
            raise self.fail("} doesn't want any addresses")
        self.commands[self.blocks.pop()].target = len(self.commands)
        self.end_of_command()

    def define_label(self, command: Command) -> None:
        if command.first is not None:
            raise self.fail(": doesn't want any addresses")
        self.skip_blanks()
        label = self.word(" \t\n\r;}#") if not self.syntax.posix else self.word("\n")
        if not label:
            raise self.fail('":" lacks a label')
        self.labels.setdefault(label, len(self.commands))

    def label(self) -> str:
        self.skip_blanks()
        return self.word(" \t\n\r;}#") if not self.syntax.posix else self.word("\n;").rstrip()

    def version(self) -> None:
        self.skip_blanks()
        wanted = self.word(" \t\n;")
        if wanted and version_key(wanted) > version_key("4.9"):
            raise self.fail("expected newer version of sed")

    def filename(self) -> str:
        if self.syntax.sandbox:
            raise self.fail("e/r/w commands disabled in sandbox mode")
        self.skip_blanks()
        end = self.text.find("\n", self.pos)
        name = self.text[self.pos : len(self.text) if end < 0 else end]
        self.pos += len(name)
        if not name:
            raise self.fail("missing filename in r/R/w/W commands")
        return name

    # -- addresses

    def address(self, *, leading: bool) -> Address | None:
        char = self.peek()
        if char == "/" or char == "\\":
            self.pos += 1
            if char == "\\":
                char = self.next()
                if not char or char == "\n":
                    raise self.fail("unterminated address regex")
            pattern = self.delimited(char, is_pattern=True)
            if pattern is None:
                raise self.fail("unterminated address regex")
            flags = self.word_of("IM")
            return Pattern(self.compile(pattern, flags))
        if char.isdecimal() and char.isascii():
            first = self.number()
            self.skip_blanks()
            if self.peek() == "~" and not self.syntax.posix:
                self.pos += 1
                self.skip_blanks()
                step = self.number()
                return Step(first, step) if step else LineNumber(first)
            return LineNumber(first)
        if char == "$":
            self.pos += 1
            return Last()
        if char in ("+", "~") and char and not self.syntax.posix:
            self.pos += 1
            self.skip_blanks()
            count = self.number()
            if not count and leading:
                return None  # GNU: as if nothing had been said
            return Plus(count) if char == "+" else Multiple(count)
        return None

    def compile(self, pattern: str, flags: str) -> regex.Regex | None:
        if not pattern:
            if flags:
                raise self.fail("cannot specify modifiers on empty regexp")
            return None
        syntax = self.syntax
        try:
            if not syntax.posix:
                pattern = in_pattern(pattern, extended=syntax.extended)
            elif "\\n" in pattern:
                pattern = pattern.replace("\\n", "\n")
            return regex.compile(
                pattern,
                syntax="sed-ere" if syntax.extended else "sed",
                ignore_case="I" in flags or "i" in flags,
                newline=(0 if syntax.null_data else 10) if "M" in flags or "m" in flags else None,
                utf8=syntax.utf8,
            )
        except regex.RegexError as error:
            if "character class syntax" in str(error):
                raise ScriptError(str(error)) from error
            raise self.fail(str(error)) from error
        except EscapeError as error:
            raise self.fail(str(error)) from error

    # -- commands with arguments

    def appended_text(self) -> bytes:
        """The text of a, i, c in both notations."""
        char = self.skip_blanks()
        if not char:
            raise self.fail("expected \\ after `a', `c' or `i'")
        if char == "\\":
            self.pos += 1
            rest = self.pos
            while self.text[rest : rest + 1] in (" ", "\t"):
                rest += 1
            if self.text[rest : rest + 1] == "\n":
                self.pos = rest + 1
            elif self.pos >= len(self.text):
                return b""
        elif char == "\n":
            self.pos += 1
            return b"\n"
        elif self.syntax.posix:
            raise self.fail("expected \\ after `a', `c' or `i'", at=self.pos + 1)
        start = self.pos
        while self.pos < len(self.text) and self.text[self.pos] != "\n":
            self.pos += 2 if self.text[self.pos] == "\\" else 1
        self.pos = min(self.pos, len(self.text))
        raw = self.text[start : self.pos]
        self.pos += 1
        try:
            text = in_text(raw)
        except EscapeError as error:
            raise self.fail(str(error)) from error
        return text.encode("utf-8", "surrogateescape") + b"\n"

    def substitution(self) -> Substitution:
        delimiter = self.next()
        pattern = self.delimited(delimiter, is_pattern=True) if delimiter not in ("", "\n", "\\") else None
        replacement = self.delimited_replacement(delimiter) if pattern is not None else None
        if pattern is None or replacement is None:
            raise self.fail("unterminated `s' command")
        flags, globally, number, prints, filename = self.substitution_flags()
        compiled = self.compile(pattern, flags)
        parts = self.replacement(replacement)
        highest = max((part.group for part in parts if isinstance(part, Reference)), default=0)
        if compiled is not None and highest > compiled.groups:
            raise self.fail(f"invalid reference \\{highest} on `s' command's RHS")
        return Substitution(compiled, parts, globally, number, prints, filename)

    def delimited_replacement(self, delimiter: str) -> str | None:
        return self.delimited(delimiter, is_pattern=False)

    def substitution_flags(self) -> tuple[str, bool, int, int, str | None]:
        flags = ""
        globally = False
        number = prints = 0
        filename: str | None = None
        while True:
            char = self.next()
            if char in ("i", "I", "m", "M"):
                flags += char
            elif char == "e":
                raise self.fail("the `e' option to `s' is not available in this sandbox")
            elif char == "p":
                if prints:
                    raise self.fail("multiple `p' options to `s' command")
                prints = 1
            elif char == "g":
                if globally:
                    raise self.fail("multiple `g' options to `s' command")
                globally = True
            elif char == "w":
                filename = self.filename()
                break
            elif char.isdecimal() and char.isascii():
                if number:
                    raise self.fail("multiple number options to `s' command")
                self.pos -= 1
                number = self.number()
                if not number:
                    raise self.fail("number option to `s' command may not be zero")
            elif char in ("}", "#") and char:
                self.pos -= 1
                break
            elif char in ("\n", ";", ""):
                break
            elif char in " \t\r":
                continue
            else:
                raise self.fail("unknown option to `s'")
        return flags, globally, number or 1, prints, filename

    def replacement(self, text: str) -> tuple[Part, ...]:
        parts: list[Part] = []
        literal: list[str] = []

        def flush() -> None:
            if literal:
                parts.append("".join(literal).encode("utf-8", "surrogateescape"))
                literal.clear()

        pos = 0
        while pos < len(text):
            char = text[pos]
            pos += 1
            if char == "&":
                flush()
                parts.append(Reference(0))
            elif char != "\\" or pos >= len(text):
                literal.append(char)
            else:
                char = text[pos]
                if char.isdecimal() and char.isascii():
                    flush()
                    parts.append(Reference(int(char)))
                elif char in "LUElu" and not self.syntax.posix:
                    flush()
                    parts.append(CaseChange(char))
                else:
                    try:
                        found = convert(text, pos) if not self.syntax.posix or char == "n" else None
                    except EscapeError as error:
                        raise self.fail(str(error)) from error
                    literal.append(found[0] if found else char)
                    pos = found[1] if found else pos + 1
                    continue
                pos += 1
        flush()
        return tuple(parts)

    def transliteration(self, command: Command) -> None:
        delimiter = self.next()
        source = self.delimited(delimiter, is_pattern=False) if delimiter else None
        target = self.delimited(delimiter, is_pattern=False) if source is not None else None
        if source is None or target is None:
            raise self.fail("unterminated `y' command")
        old, new = self.characters(source), self.characters(target)
        if len(old) != len(new):
            raise self.fail("strings for `y' command are different lengths")
        for one, other in zip(old, new, strict=True):
            command.mapping.setdefault(one, other)
        self.end_of_command()

    def characters(self, text: str) -> str:
        """One side of `y` with its escapes replaced."""
        out: list[str] = []
        pos = 0
        while pos < len(text):
            char = text[pos]
            pos += 1
            if char == "\\" and pos < len(text):
                if text[pos] in ("\\", "&", "\n"):
                    out.append(text[pos])
                    pos += 1
                    continue
                try:
                    found = convert(text, pos)
                except EscapeError as error:
                    raise self.fail(str(error)) from error
                char, pos = found or (text[pos], pos + 1)
            out.append(char)
        joined = join_bytes("".join(out))
        if not self.syntax.utf8:
            return joined.encode("utf-8", "surrogateescape").decode("latin-1")
        return joined
