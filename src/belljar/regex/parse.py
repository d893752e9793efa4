"""Parses POSIX basic and extended regular expressions, with GNU's extensions and its errors."""

from __future__ import annotations

from msgspec import Struct, field

from belljar.regex.bracket import parse_bracket
from belljar.regex.dialect import Dialect
from belljar.regex.nodes import (
    EMPTY,
    NOT_SPACE,
    NOT_WORD,
    SPACE,
    WORD,
    Alt,
    Any,
    Assert,
    Backref,
    Cat,
    Char,
    Group,
    Node,
    RegexError,
    Repeat,
    Zero,
)

DUP_MAX = 0x7FFF
MAX_DEPTH = 120  # Python's own compiler recurses twice a level
_ESCAPED: dict[str, Node] = {
    "w": WORD,
    "W": NOT_WORD,
    "s": SPACE,
    "S": NOT_SPACE,
    "<": Assert(Zero.WORD_START),
    ">": Assert(Zero.WORD_END),
    "b": Assert(Zero.WORD_EDGE),
    "B": Assert(Zero.NOT_WORD_EDGE),
    "`": Assert(Zero.BUFFER_START),
    "'": Assert(Zero.BUFFER_END),
}
_C_ESCAPES = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "/": 47, '"': 34, "&": 38}
_OPERATORS = frozenset("*+?{")


class Parsed(Struct):
    tree: Node
    groups: int
    has_backrefs: bool
    warnings: list[str] = field(default_factory=list)


def parse(pattern: str, dialect: Dialect) -> Parsed:
    """Parse `pattern`; raises RegexError with GNU's message."""
    parser = _Parser(pattern, dialect)
    tree = parser.alternatives(0)
    return Parsed(tree, parser.groups, parser.has_backrefs, parser.warnings)


class _Parser:
    def __init__(self, pattern: str, dialect: Dialect) -> None:
        self.text = pattern
        self.pos = 0
        self.dialect = dialect
        self.groups = 0
        self.closed: set[int] = set()
        self.has_backrefs = False
        self.warnings: list[str] = []
        # "" for the tokens that are spelled with a backslash in basic syntax
        self.prefix = "" if dialect.extended else "\\"

    def warn(self, message: str) -> None:
        if self.dialect.warnings and message not in self.warnings:
            self.warnings.append(message)

    def at(self, operator: str) -> bool:
        """Whether the next token is `(`, `)`, `|` or `{` as an operator."""
        return self.text.startswith(self.prefix + operator, self.pos)

    def at_alternation(self) -> bool:
        return self.at("|") or (self.dialect.newline_alt and self.text.startswith("\n", self.pos))

    def alternatives(self, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise RegexError("Regular expression too big")
        branches = [self.sequence(depth)]
        while self.at_alternation():
            self.pos += 1 if self.text[self.pos] == "\n" else len(self.prefix) + 1
            branches.append(self.sequence(depth))
        return branches[0] if len(branches) == 1 else Alt(tuple(branches))

    def sequence(self, depth: int) -> Node:
        items: list[Node] = []
        start = True  # is a repeat operator here without anything to repeat?
        while self.pos < len(self.text) and not self.at_alternation():
            if self.at(")") and (depth or not self.dialect.unmatched_paren_ord):
                if not depth:
                    raise RegexError("Unmatched ) or \\)")
                break
            item = self.expression(depth, start, caret=not items)
            if item is None:
                continue
            items.append(item)
            start = isinstance(item, Assert) and item.kind is Zero.LINE_START
        return items[0] if len(items) == 1 else Cat(tuple(items))

    def expression(self, depth: int, start: bool, caret: bool) -> Node | None:
        """One element with its repeats; None where the dialect skips a stray operator."""
        operator = self.repeat_operator()
        if operator and (start or self.dialect.extended):
            return self.stray_operator(operator, depth)
        element = self.element(depth, caret)
        if isinstance(element, Assert):
            # GNU: an anchor can't be repeated; what follows it starts an expression.
            # Only grep -E's own matcher makes an exception of ^* and $*.
            line_anchor = element.kind in (Zero.LINE_START, Zero.LINE_END)
            if not (line_anchor and self.dialect.repeatable_anchors):
                return element
            operator, here = self.repeat_operator(), self.pos
            if operator and element.kind is Zero.LINE_START and (operator != "{" or self.interval()):
                self.warn(f"{'{...}' if operator == '{' else operator} at start of expression")
            self.pos = here
        return self.repeats(element)

    def stray_operator(self, operator: str, depth: int) -> Node | None:
        dialect = self.dialect
        if (operator == "{" and dialect.context_invalid_dup) or dialect.context_invalid_ops:
            raise RegexError("Invalid preceding regular expression")
        shown = "{...}" if operator == "{" else operator
        interval = operator == "{" and dialect.repeatable_anchors and self.interval()
        if interval:
            self.warn(f"{shown} at start of expression")
            return None
        self.pos += 1 if self.text[self.pos] != "\\" else 2
        if dialect.context_indep_ops and interval is False:
            self.warn(f"{shown} at start of expression")
            if self.pos < len(self.text) and self.at(")") and depth:
                self.pos += len(self.prefix) + 1  # GNU takes it for a literal
                return self.repeats(Char(ord(")")))
            return None
        return self.repeats(Char(ord(operator)))

    def repeat_operator(self) -> str:
        """The repeat operator at the cursor: one of * + ? {, or nothing."""
        text, pos = self.text, self.pos
        if pos >= len(text):
            return ""
        char = text[pos]
        if char == "*":
            return "*"
        if char in "+?" and self.dialect.plus_query:
            return char
        if char == "{" and self.dialect.extended and self.dialect.braces:
            return "{"
        if char == "\\" and not self.dialect.extended and pos + 1 < len(text):
            after = text[pos + 1]
            if after in "+?" and not self.dialect.plus_query:
                return after
            if after == "{" and self.dialect.braces:
                return "{"
        return ""

    def repeats(self, element: Node) -> Node:
        repeated = False
        while operator := self.repeat_operator():
            if repeated and operator in "*{" and self.dialect.context_invalid_dup:
                raise RegexError("Invalid preceding regular expression")
            if operator == "{":
                bounds = self.interval()
                if bounds is None:
                    # a literal brace, which the next element() call must not take for an operator
                    self.pos += 1
                    return Cat((element, self.repeats(Char(ord("{")))))
            else:
                self.pos += 1 if self.text[self.pos] != "\\" else 2
                bounds = {"*": (0, None), "+": (1, None), "?": (0, 1)}[operator]
            element = repeat(element, *bounds)
            repeated = True
        return element

    def interval(self) -> tuple[int, int | None] | None:
        """`{m,n}` at the cursor; None (cursor unmoved) where it is literal text."""
        text = self.text
        close = self.prefix + "}"
        first = self.pos + len(self.prefix) + 1
        end = text.find(close, first)
        if end < 0:
            if self.dialect.invalid_interval_ord:
                return None
            # GNU reads numbers as it goes: a bad one is reported before the missing brace
            raise RegexError("Unmatched \\{")
        body = text[first:end]
        low_text, comma, high_text = body.partition(",")
        if not low_text and not comma:
            raise RegexError("Invalid content of \\{\\}")
        for number in (low_text, high_text):
            if number and not (number.isascii() and number.isdigit()):
                if self.dialect.invalid_interval_ord:
                    return None
                raise RegexError("Invalid content of \\{\\}")
        low = _bounded(low_text) if low_text else 0
        high = low if not comma else _bounded(high_text) if high_text else None
        if high is not None and low > high:
            raise RegexError("Invalid content of \\{\\}")
        if max(low, high or 0) > DUP_MAX:
            raise RegexError("Regular expression too big")
        self.pos = end + len(close)
        return low, high

    def element(self, depth: int, caret: bool) -> Node:
        text, dialect = self.text, self.dialect
        if self.at("("):
            return self.group(depth)
        char = text[self.pos]
        if char == "\\":
            return self.escape()
        if char == "[":
            node, self.pos = parse_bracket(text, self.pos + 1, dialect)
            return node
        self.pos += 1
        if char == ".":
            return Any()
        if char == "^" and (dialect.extended or caret):
            return Assert(Zero.LINE_START)
        if char == "$" and (dialect.extended or self.ends_expression()):
            return Assert(Zero.LINE_END)
        return Char(ord(char))

    def ends_expression(self) -> bool:
        return self.pos >= len(self.text) or self.at(")") or self.at_alternation()

    def group(self, depth: int) -> Node:
        self.pos += len(self.prefix) + 1
        self.groups += 1
        index = self.groups
        body = self.alternatives(depth + 1)
        if not self.at(")"):
            raise RegexError("Unmatched ( or \\(")
        self.pos += len(self.prefix) + 1
        self.closed.add(index)
        return Group(index, body)

    def escape(self) -> Node:
        text = self.text
        if self.pos + 1 >= len(text):
            raise RegexError("Trailing backslash")
        char = text[self.pos + 1]
        self.pos += 2
        if self.dialect.c_escapes:
            code = self.c_escape(char)
            if code is not None:
                return Char(code)
            if char == "y":
                return Assert(Zero.WORD_EDGE)
        elif "1" <= char <= "9":
            return self.backref(int(char))
        if not self.dialect.extended and char == ")":
            raise RegexError("Unmatched ) or \\)")
        if char in _ESCAPED:
            return _ESCAPED[char]
        return Char(ord(char))

    def backref(self, index: int) -> Node:
        if index not in self.closed:
            raise RegexError("Invalid back reference")
        self.has_backrefs = True
        return Backref(index)

    def c_escape(self, char: str) -> int | None:
        if char in _C_ESCAPES:
            return _C_ESCAPES[char]
        if "0" <= char <= "7":
            return self.digits(char, "01234567", 3, 8)
        if char == "x":
            return self.digits("", "0123456789abcdefABCDEF", 2, 16)
        return None

    def digits(self, seen: str, alphabet: str, most: int, base: int) -> int | None:
        while len(seen) < most and self.pos < len(self.text) and self.text[self.pos] in alphabet:
            seen += self.text[self.pos]
            self.pos += 1
        return int(seen, base) & 0xFF if seen else None


def _bounded(digits: str) -> int:
    return int(digits) if len(digits) < 9 else DUP_MAX + 1


def repeat(element: Node, low: int, high: int | None) -> Node:
    """`element` repeated, with the redundant nesting that costs backtracking removed."""
    if (low, high) == (1, 1) or element == EMPTY:
        return element
    if high == 0 and not _captures(element):
        return EMPTY
    if isinstance(element, Repeat) and high is None and low <= 1 and element.high is None and element.low <= 1:
        return Repeat(element.body, min(low, element.low), None)
    if isinstance(element, Repeat) and (low, high) == (0, 1) and element.low <= 1:
        return Repeat(element.body, 0, element.high)
    return Repeat(element, low, high)


def _captures(node: Node) -> bool:
    match node:
        case Group():
            return True
        case Cat(items=children) | Alt(branches=children):
            return any(map(_captures, children))
        case Repeat(body=body):
            return _captures(body)
        case _:
            return False
