"""The command history and `!` history expansion."""

from __future__ import annotations

import re
from typing import Final

from belljar.libc.pattern import compile_pattern


class History:
    """The lines entered, oldest first; numbers go on counting when old ones drop out."""

    __slots__ = ("base", "lines", "saved")

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.base = 1
        """The number of the first line."""
        self.saved = 0
        """The number of lines the history file already has."""

    def copy(self) -> History:
        fresh = History()
        fresh.lines, fresh.base, fresh.saved = self.lines.copy(), self.base, self.saved
        return fresh

    @property
    def next_number(self) -> int:
        return self.base + len(self.lines)

    def add(self, line: str, *, control: str = "", ignore: str = "", size: int | None = 500) -> bool:
        """Remember a line, unless HISTCONTROL or HISTIGNORE say otherwise."""
        rules = control.split(":")
        if ("ignorespace" in rules or "ignoreboth" in rules) and line.startswith((" ", "\t")):
            return False
        if ("ignoredups" in rules or "ignoreboth" in rules) and self.lines and self.lines[-1] == line:
            return False
        for pattern in ignore.split(":"):
            if pattern and self._is_ignored(pattern, line):
                return False
        if "erasedups" in rules:
            self.lines = [old for old in self.lines if old != line]
        self.lines.append(line)
        if size is not None and len(self.lines) > size:
            drop = len(self.lines) - size
            del self.lines[:drop]
            self.base += drop
            self.saved = max(0, self.saved - drop)
        return True

    def _is_ignored(self, pattern: str, line: str) -> bool:
        if "&" in pattern and self.lines:
            pattern = re.sub(r"\\&|&", lambda m: "&" if m.group() == "\\&" else self.lines[-1], pattern)
        return compile_pattern(pattern).matches(line)

    def replace_last(self, line: str) -> None:
        if self.lines:
            self.lines[-1] = line

    def delete(self, number: int, last: int | None = None) -> bool:
        """Forget the lines from one number to another; False if they aren't there."""
        first = number - self.base
        end = (last if last is not None else number) - self.base
        if not 0 <= first <= end < len(self.lines):
            return False
        del self.lines[first : end + 1]
        self.saved = min(self.saved, len(self.lines))
        return True

    def clear(self) -> None:
        self.lines.clear()
        self.base = 1
        self.saved = 0

    def get(self, number: int) -> str | None:
        place = number - self.base
        return self.lines[place] if 0 <= place < len(self.lines) else None

    def find_prefix(self, prefix: str) -> int | None:
        """The number of the latest line that begins so."""
        for place in range(len(self.lines) - 1, -1, -1):
            if self.lines[place].startswith(prefix):
                return self.base + place
        return None

    def find_within(self, text: str) -> int | None:
        for place in range(len(self.lines) - 1, -1, -1):
            if text in self.lines[place]:
                return self.base + place
        return None


_QUOTED: Final = re.compile(r"""\\.|'[^']*'|"(?:\\.|[^"\\])*"|(?<![^\s;&|()])\#[^\n]*|<<(?!<)""", re.DOTALL)
_OPEN_QUOTE: Final = re.compile(r"""(?<!\\)['"]""")
_NO_SEMICOLON: Final = re.compile(
    r"(?:[;&|({)]|(?:^|[\s;&|({])(?:do|then|else|elif|if|while|until|!|\{|time))\s*\Z|\A\s*\Z"
    r"|(?:^|[\s;&|({])(?:case\s+\S+|for\s+\w+|select\s+\w+)\s+in\s*\Z"
)


LONGEST_JOINED: Final = 20_000


def join_lines(text: str) -> str:
    """A command over several lines as the one that `cmdhist` remembers: semicolons where they mean the same.

    A very long one is left as it is: each of its lines is looked at with all before it.
    """
    if len(text) > LONGEST_JOINED:
        return text
    lines = text.split("\n")
    joined = lines[0]
    for line in lines[1:]:
        found = _QUOTED.findall(joined)
        plain = _QUOTED.sub("x", joined)
        commented = bool(found) and found[-1].startswith("#") and joined.endswith(found[-1])
        if _OPEN_QUOTE.search(plain) or "<<" in found or commented:
            joined += "\n" + line
        elif joined.endswith("\\") and not plain.endswith("x"):
            joined = joined[:-1] + line
        else:
            joined += (" " if _NO_SEMICOLON.search(plain) else "; ") + line
    return joined


class HistoryError(Exception):
    """`!...` that can't be expanded; the text is bash's message."""


_WORD: Final = re.compile(
    r"""(?:\\.|'[^']*'|"(?:\\.|[^"])*"|[^\s'"\\|&;()<>])+|&&|\|\||;;|>>|<<-?|[|&;()<>]""", re.DOTALL
)
_EVENT: Final = re.compile(r"!(?:(!)|(-?\d+)|\?([^?\n]*)\??|(#)|(?=[:^$*%])|([^\s:^$*%\-=()|;&<>\"']+))")
_DESIGNATOR: Final = re.compile(r":?([\^$%])(?![\w])|:(\d+)(?:-(\d+|\$)?|(\*))?|:?(\*)|:?-(\d+|\$)|:([\^$%])")


def expand(line: str, history: History) -> tuple[str, bool]:
    """The line with its `!` references replaced; True if it is only to be shown (`:p`). HistoryError."""
    if line.startswith("^"):
        parts = line[1:].split("^", 2)
        if len(parts) < 2:
            parts.append("")
        last = history.lines[-1] if history.lines else None
        if last is None or parts[0] not in last:
            raise HistoryError(f":s{line}: substitution failed")
        return last.replace(parts[0], parts[1], 1) + (parts[2] if len(parts) > 2 else ""), False
    if "!" not in line:
        return line, False
    out: list[str] = []
    position = 0
    shown = False
    while position < len(line):
        char = line[position]
        if char == "\\" and position + 1 < len(line):
            out.append(line[position : position + 2])
            position += 2
        elif char == "'":
            end = line.find("'", position + 1)
            end = len(line) if end < 0 else end + 1
            out.append(line[position:end])
            position = end
        elif char == "!" and position + 1 < len(line) and line[position + 1] not in ' \t\n=("':
            text, position, printed = _reference(line, position, history, "".join(out))
            out.append(text)
            shown = shown or printed
        else:
            out.append(char)
            position += 1
    return "".join(out), shown


def _reference(line: str, position: int, history: History, typed: str) -> tuple[str, int, bool]:
    match = _EVENT.match(line, position)
    if match is None:
        return "!", position + 1, False
    double, number, within, hash_mark, prefix = match.groups()
    reference = match.group()
    found: int | None
    if hash_mark:
        event: str | None = typed
    else:
        if number is not None:
            value = int(number)
            found = history.next_number + value if value < 0 else value
        elif within is not None:
            found = history.find_within(within)
        elif prefix is not None:
            found = history.find_prefix(prefix)
        else:
            found = history.next_number - 1
        event = history.get(found) if found is not None else None
    if event is None:
        raise HistoryError(f"{reference}: event not found")
    position = match.end()
    words = _WORD.findall(event)
    chosen = _DESIGNATOR.match(line, position)
    if chosen is not None and not (double is None and not reference[1:] and chosen.end() == position):
        event = _select(words, chosen, reference + chosen.group())
        position = chosen.end()
    return _modify(event, line, position)


def _select(words: list[str], match: re.Match[str], reference: str) -> str:
    mark, first, to, star, every, until, colon_mark = match.groups()
    mark = mark or colon_mark
    last = len(words) - 1
    if mark == "^":
        low = high = 1
    elif mark in ("$", "%"):
        low = high = last
    elif every:
        return " ".join(words[1:])
    elif until is not None:
        low, high = 0, last if until == "$" else int(until)
    else:
        low = high = int(first)
        if star:
            high = last
        elif "-" in match.group():
            high = last if to == "$" else int(to) if to else last - 1
    if low > last or high > last or high < low:
        raise HistoryError(f"{reference}: bad word specifier")
    return " ".join(words[low : high + 1])


def _modify(text: str, line: str, position: int) -> tuple[str, int, bool]:
    """Apply `:h :t :r :e :p :q :x :s/a/b/ :gs/a/b/ :&`."""
    shown = False
    while line.startswith(":", position) and position + 1 < len(line):
        everywhere = line[position + 1] in "ga" and position + 2 < len(line)
        place = position + 1 + everywhere
        letter = line[place]
        if letter == "h":
            text = text.rpartition("/")[0] or text
        elif letter == "t":
            text = text.rpartition("/")[2]
        elif letter == "r":
            text = re.sub(r"\.[^./]*$", "", text)
        elif letter == "e":
            found = re.search(r"\.[^./]*$", text)
            text = found.group() if found else ""
        elif letter == "p":
            shown = True
        elif letter == "q":
            text = "'" + text.replace("'", "'\\''") + "'"
        elif letter == "x":
            text = " ".join("'" + word + "'" for word in text.split())
        elif letter == "s" and place + 1 < len(line):
            delimiter = line[place + 1]
            parts = line[place + 2 :].split(delimiter, 2)
            old, new = parts[0], parts[1] if len(parts) > 1 else ""
            if not old or old not in text:
                raise HistoryError(f"{line[position:]}: substitution failed")
            text = text.replace(old, new, -1 if everywhere else 1)
            place += 1 + len(old) + 1 + len(new) + (1 if len(parts) > 2 else 0)
            place = min(place, len(line) - 1)
        else:
            break
        position = place + 1
    return text, position, shown
