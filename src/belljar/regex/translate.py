"""Writes a syntax tree in the notation of Python's `re` or of RE2."""

from __future__ import annotations

from msgspec import Struct

from belljar.libc.ctype import MAX, Ranges, complement, resolve, subtract, union
from belljar.regex.analyse import nullable
from belljar.regex.nodes import Alt, Any, Assert, Backref, Cat, Char, Group, Node, Repeat, Set, Zero

_RAW = (0xDC80, 0xDCFF)  # undecodable bytes: no character, so neither `.` nor [^x] matches them


class Untranslatable(Exception):
    """The target notation can't say this."""


class Target(Struct, frozen=True):
    """Engine and kind of subject that the pattern is written for."""

    re2: bool  # RE2's notation, else `re`'s
    wide: bool  # code points (str for `re`, UTF-8 for RE2), else bytes
    utf8: bool  # the pattern's characters are UTF-8 (else: one byte each)
    separator: int | None  # line mode: the byte no match may contain
    newline: int | None  # ^ and $ match at this character (a newline), . and [^x] don't match it
    captures: bool  # keep the groups' numbers


def translate(tree: Node, target: Target) -> str:
    """Pattern text; for a narrow target every character stands for one byte."""
    return _Writer(target).write(tree)


class _Writer:
    def __init__(self, target: Target) -> None:
        self.target = target

    def write(self, node: Node) -> str:
        match node:
            case Char(code=code):
                return self.char(code)
            case Any():
                return self.any()
            case Set():
                return self.set(node)
            case Assert(kind=kind):
                return self.zero(kind)
            case Cat(items=items):
                return self.cat(items)
            case Alt(branches=branches):
                return "|".join([self.write(branch) for branch in branches])
            case Group(body=body):
                return f"({self.write(body)})" if self.target.captures else f"(?:{self.write(body)})"
            case Repeat():
                return self.repeat(node)
            case Backref(index=index):
                if self.target.re2 or not self.target.captures:
                    raise Untranslatable
                return f"(?:\\{index})"

    def never(self) -> str:
        return "[^\\x00-\\x{10FFFF}]" if self.target.re2 else "(?!)"

    def point(self, code: int) -> str:
        if 48 <= code <= 57 or 65 <= code <= 90 or 97 <= code <= 122 or code == 95:
            return chr(code)
        if code < 256:
            return f"\\x{code:02x}"
        if self.target.re2:
            if _RAW[0] <= code <= _RAW[1]:
                raise Untranslatable
            return f"\\x{{{code:x}}}"
        return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

    def char(self, code: int) -> str:
        target = self.target
        if code == target.separator:
            return self.never()
        if target.wide or code < 128 or not target.utf8:
            return self.point(code)
        encoded = chr(code).encode("utf-8", "surrogateescape")
        return "(?:" + "".join([f"\\x{byte:02x}" for byte in encoded]) + ")"

    def excluded(self) -> tuple[tuple[int, int], ...]:
        """The ranges that even `.` and [^x] don't match."""
        target = self.target
        out: list[tuple[int, int]] = []
        if target.separator is not None:
            out.append((target.separator, target.separator))
        if target.newline is not None:
            out.append((10, 10))  # whatever ends lines: GNU's REG_NEWLINE
        if target.wide and not target.re2:
            out.append(_RAW)
        return tuple(out)

    def any(self) -> str:
        excluded = self.excluded()
        return f"[^{self.ranges(union(excluded))}]" if excluded else "(?s:.)"

    def ranges(self, ranges: Ranges) -> str:
        return "".join(
            [self.point(low) if low == high else f"{self.point(low)}-{self.point(high)}" for low, high in ranges]
        )

    def set(self, node: Set) -> str:
        target = self.target
        members = resolve(node.ranges, node.classes, unicode=target.wide)
        if not target.wide and target.utf8:
            # the text is ASCII, or the traits say that non-ASCII members don't matter
            members = tuple((low, min(high, 127)) for low, high in members if low < 128)
        elif not target.wide:
            members = tuple((low, min(high, 255)) for low, high in members if low < 256)
        if target.re2:
            members = tuple(r for r in members if not _RAW[0] <= r[0] <= _RAW[1])
        if node.negated:
            members = union(members + self.excluded())
            if not members:
                return "(?s:.)"
            if members == ((0, MAX),) or not complement(members, MAX if target.wide else 255):
                return self.never()
            return f"[^{self.ranges(members)}]"
        if target.separator is not None:
            members = subtract(members, target.separator)
        return f"[{self.ranges(members)}]" if members else self.never()

    def zero(self, kind: Zero) -> str:
        target = self.target
        lines = 10 in (target.newline, target.separator)
        by_nul = not lines and 0 in (target.newline, target.separator)
        end = "\\z" if target.re2 else "\\Z"
        match kind:
            case Zero.LINE_START:
                if by_nul:
                    return self.zero_separated("(?<![^\\x00])")
                return "(?m:^)" if lines else "\\A"
            case Zero.LINE_END:
                if by_nul:
                    return self.zero_separated("(?![^\\x00])")
                return "(?m:$)" if lines else end
            case Zero.BUFFER_START:
                return self.zero(Zero.LINE_START) if target.separator is not None else "\\A"
            case Zero.BUFFER_END:
                return self.zero(Zero.LINE_END) if target.separator is not None else end
            case Zero.WORD_EDGE:
                if target.re2 and target.wide:
                    raise Untranslatable
                return "\\b"
            case _:
                return self.word(kind)

    def zero_separated(self, text: str) -> str:
        if self.target.re2:
            raise Untranslatable
        return text

    def word(self, kind: Zero) -> str:
        if self.target.re2:
            return self.word_for_re2(kind)
        match kind:
            case Zero.WORD_START:
                return "(?<!\\w)(?=\\w)"
            case Zero.WORD_END:
                return "(?<=\\w)(?!\\w)"
            case Zero.NOT_WORD_EDGE:
                return "(?:(?<=\\w)(?=\\w)|(?<!\\w)(?!\\w))"
            case _:
                return str(kind.value)

    def word_for_re2(self, kind: Zero) -> str:
        """RE2 knows only \\b and \\B, and those only for ASCII."""
        target = self.target
        if target.wide:
            raise Untranslatable
        if kind is Zero.NOT_WORD_EDGE:
            return "\\B"
        if not target.captures and kind in (Zero.NOT_AFTER_WORD, Zero.NOT_BEFORE_WORD) and target.separator == 10:
            # only the existence of a match counts, so the neighbour may be consumed
            edge = "^" if kind is Zero.NOT_AFTER_WORD else "$"
            return f"(?:(?m:{edge})|[^0-9A-Za-z_\\n])"
        raise Untranslatable

    def cat(self, items: tuple[Node, ...]) -> str:
        parts = []
        for index, item in enumerate(items):
            if self.target.re2 and not self.target.wide and isinstance(item, Assert):
                # beside a word character a directed edge is just an edge
                before = item.kind is Zero.WORD_START and index + 1 < len(items) and wordlike(items[index + 1], 0)
                after = item.kind is Zero.WORD_END and index > 0 and wordlike(items[index - 1], -1)
                if before or after:
                    parts.append("\\b")
                    continue
            text = self.write(item)
            parts.append(f"(?:{text})" if isinstance(item, Alt) else text)
        return "".join(parts)

    def repeat(self, node: Repeat) -> str:
        body = self.write(node.body)
        if (
            not isinstance(node.body, Any | Set | Group)
            and len(body) > 1
            and not (len(body) == 4 and body[:2] == "\\x")
        ):
            body = f"(?:{body})"
        low, high = node.low, node.high
        if self.target.captures and not self.target.re2 and low <= 1 and high is None and nullable(node.body):
            # `re` would let a last, empty round overwrite what a group captured
            heads = [self.write(head) for head in first_characters(node.body)]
            body = f"(?:(?={'|'.join(heads)}){body})" if heads else body
            low = 0
        if (low, high) == (0, None):
            return body + "*"
        if (low, high) == (1, None):
            return body + "+"
        if (low, high) == (0, 1):
            return body + "?"
        if self.target.re2 and max(low, high or 0) > 1000:
            raise Untranslatable
        return f"{body}{{{low}}}" if low == high else f"{body}{{{low},{'' if high is None else high}}}"


def first_characters(node: Node) -> list[Node]:
    """The single-character nodes a match may begin with."""
    match node:
        case Char() | Any() | Set():
            return [node]
        case Cat(items=items):
            heads: list[Node] = []
            for item in items:
                heads += first_characters(item)
                if not nullable(item):
                    break
            return heads
        case Alt(branches=branches):
            return [head for branch in branches for head in first_characters(branch)]
        case Group(body=body) | Repeat(body=body):
            return first_characters(body)
        case Backref():
            return [Any()]
        case _:
            return []


def wordlike(node: Node, edge: int) -> bool:
    """Whether every match begins (edge 0) or ends (edge -1) with an ASCII word character."""
    match node:
        case Char(code=code):
            return code < 128 and (chr(code).isalnum() or code == 95)
        case Set(negated=False, ranges=ranges, classes=classes):
            word = complement(resolve(((95, 95),), ("alnum",), unicode=False), 127)
            inside = all(not (low <= b and a <= high) for low, high in ranges for a, b in word)
            return inside and set(classes) <= {"alpha", "digit", "alnum", "upper", "lower", "xdigit"}
        case Group(body=body):
            return wordlike(body, edge)
        case Repeat(body=body, low=low) if low:
            return wordlike(body, edge)
        case Cat(items=items) if items:
            return wordlike(items[edge], edge)
        case Alt(branches=branches):
            return all(wordlike(branch, edge) for branch in branches)
        case _:
            return False
