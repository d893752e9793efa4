"""Decides from a syntax tree which engine may run it, and how.

The central notion is determinism: at every choice (repeat again or go on, which branch) the next
character alone decides. Then there is one path through the pattern, backtracking is linear, and
the first match `re` finds is also POSIX's longest. Beyond that, `flat` tails (a sequence of
single characters and unbounded repeats of single characters) are still longest: of two starting
points of such a tail the later one never ends earlier, so the greediest repeat ends last.
"""

from __future__ import annotations

from msgspec import Struct

from belljar.libc.ctype import resolve
from belljar.regex.nodes import Alt, Any, Assert, Backref, Cat, Char, Group, Node, RegexError, Repeat, Set, Zero

SIZE_LIMIT = 40_000
_HIGH = 1 << 128  # stands for every non-ASCII character
_ALL = (1 << 129) - 1
_END = 1 << 129  # the match may end here
_WORD_KINDS = frozenset(
    {
        Zero.WORD_START,
        Zero.WORD_END,
        Zero.WORD_EDGE,
        Zero.NOT_WORD_EDGE,
        Zero.NOT_AFTER_WORD,
        Zero.NOT_BEFORE_WORD,
    }
)


class Traits(Struct, frozen=True):
    """Properties of a pattern by which its engine is chosen."""

    longest_first: bool  # `re`'s first match is the longest one
    ambiguous_repeats: int  # degree of the polynomial `re` may need
    explosive: bool  # `re` may need exponential time
    backrefs: bool
    word_edges: bool
    ascii_exact: bool  # the bytes translation is right for any UTF-8 text
    ascii_exact_if_valid: bool  # ... for well-formed UTF-8 text
    literal: str  # text every match contains, "" if none was found
    pure_literal: bool  # the pattern is nothing but `literal`


def size(node: Node) -> int:
    """Nodes after repeats are expanded."""
    match node:
        case Cat(items=children) | Alt(branches=children):
            return 1 + sum(map(size, children))
        case Group(body=body):
            return 1 + size(body)
        case Repeat(body=body, low=low, high=high):
            return size(body) * max(low, high or 0, 1)
        case _:
            return 1


def nullable(node: Node) -> bool:
    match node:
        case Char() | Any() | Set():
            return False
        case Cat(items=items):
            return all(map(nullable, items))
        case Alt(branches=branches):
            return any(map(nullable, branches))
        case Group(body=body):
            return nullable(body)
        case Repeat(body=body, low=low):
            return low == 0 or nullable(body)
        case _:
            return True


def single(node: Node) -> bool:
    """Whether it matches exactly one character, captured or not."""
    return isinstance(node, Char | Any | Set)


def analyse(tree: Node, *, ignore_case: bool, allowance: int = 0) -> Traits:
    """Analyse a tree; raises where its repeats multiply beyond SIZE_LIMIT (`allowance`: its length)."""
    if size(tree) > SIZE_LIMIT + 2 * allowance:
        raise RegexError("Regular expression too big")
    walk = _Walk(ignore_case)
    walk.visit(tree, _END)
    exact, exact_if_valid = _ascii_exact(tree, ignore_case)
    literal = "" if ignore_case else _literal(tree)
    return Traits(
        longest_first=_literal_choice(tree)
        or (not walk.choices and (not walk.ambiguous or _flat_tail(tree, walk.ambiguous))),
        ambiguous_repeats=len(walk.ambiguous),
        explosive=walk.nested or walk.choices > 8,
        backrefs=walk.backrefs,
        word_edges=walk.word_edges,
        ascii_exact=exact,
        ascii_exact_if_valid=exact_if_valid,
        literal=literal,
        pure_literal=bool(literal) and isinstance(tree, Char | Cat) and _text_of(tree) == literal,
    )


class _Walk:
    """One pass from right to left, carrying the set of characters that may follow."""

    def __init__(self, ignore_case: bool) -> None:
        self.ignore_case = ignore_case
        self.ambiguous: list[Repeat] = []
        self.choices = 0  # ambiguous choices other than repeats of one character
        self.nested = False  # an ambiguous choice inside an unbounded repeat
        self.backrefs = False
        self.word_edges = False
        self.loops = 0

    def mask(self, node: Char | Any | Set) -> int:
        if isinstance(node, Any):
            return _ALL
        if isinstance(node, Char):
            if node.code > 127:
                return _HIGH
            bits = 1 << node.code
        else:
            bits = 0
            for low, high in resolve(node.ranges, node.classes, unicode=False):
                if low < 128:
                    bits |= (1 << (min(high, 127) + 1)) - (1 << low)
                if high > 127:
                    bits |= _HIGH
            if node.classes:
                bits |= _HIGH
            if node.negated:
                return (_ALL & ~bits) | _HIGH
        if self.ignore_case:
            letters = bits & (((1 << 26) - 1) << 65 | ((1 << 26) - 1) << 97)
            bits |= (letters & (((1 << 26) - 1) << 65)) << 32 | (letters & (((1 << 26) - 1) << 97)) >> 32
        return bits

    def first(self, node: Node) -> int:
        match node:
            case Char() | Any() | Set():
                return self.mask(node)
            case Cat(items=items):
                bits = 0
                for item in items:
                    bits |= self.first(item)
                    if not nullable(item):
                        break
                return bits
            case Alt(branches=branches):
                bits = 0
                for branch in branches:
                    bits |= self.first(branch)
                return bits
            case Group(body=body) | Repeat(body=body):
                return self.first(body)
            case Backref():
                return _ALL
            case _:
                return 0

    def clash(self) -> None:
        self.choices += 1
        self.nested = self.nested or self.loops > 0

    def visit(self, node: Node, follow: int) -> None:
        match node:
            case Cat(items=items):
                for item in reversed(items):
                    self.visit(item, follow)
                    follow = self.first(item) | (follow if nullable(item) else 0)
            case Alt(branches=branches):
                seen = 0
                for branch in branches:
                    bits = self.first(branch) | (follow if nullable(branch) else 0)
                    # `re` ends with an empty branch although a later one would match more
                    if bits & seen or seen & _END:
                        self.clash()
                    seen |= bits
                    self.visit(branch, follow)
            case Group(body=body):
                self.visit(body, follow)
            case Repeat():
                self.visit_repeat(node, follow)
            case Backref():
                self.backrefs = True
                self.clash()
            case Assert(kind=kind):
                self.word_edges = self.word_edges or kind in _WORD_KINDS
            case _:
                pass

    def visit_repeat(self, node: Repeat, follow: int) -> None:
        body = node.body
        start = self.first(body)
        if node.low != node.high and (start & follow or nullable(body)):
            if single(body) and node.high is None and self.loops == 0:
                self.ambiguous.append(node)
            else:
                self.clash()
        many = node.high is None or node.high > 1
        if many and not single(body):
            # a counted repeat is as dangerous as a star once it is long
            heavy = node.high is None or node.high > 4
            self.loops += heavy
            self.visit(body, follow | start)
            self.loops -= heavy
        else:
            self.visit(body, follow)


def _literal_choice(tree: Node) -> bool:
    """A choice of words and nothing else: with the longer ones put first `re` finds the longest."""
    while isinstance(tree, Group):
        tree = tree.body
    return isinstance(tree, Alt) and all(_text_of(branch) is not None for branch in tree.branches)


def _sequence(node: Node) -> list[Node]:
    """The top-level sequence, groups that are not repeated opened."""
    match node:
        case Cat(items=items):
            return [leaf for item in items for leaf in _sequence(item)]
        case Group(body=body) if not isinstance(body, Alt):
            return _sequence(body)
        case _:
            return [node]


def _flat_tail(tree: Node, ambiguous: list[Repeat]) -> bool:
    """Whether from the first ambiguous repeat on there are only single characters and unbounded repeats of them."""
    leaves = _sequence(tree)
    start = next((i for i, leaf in enumerate(leaves) if any(leaf is one for one in ambiguous)), None)
    if start is None:
        return False
    return all(
        single(leaf)
        or isinstance(leaf, Assert)
        or (isinstance(leaf, Repeat) and single(leaf.body) and (leaf.high is None or leaf.high == leaf.low))
        for leaf in leaves[start:]
    )


def _ascii_exact(node: Node, ignore_case: bool) -> tuple[bool, bool]:
    """Whether matching bytes is right for (any, well-formed) UTF-8.

    A literal never matches in the middle of a character. `.` and `[^x]` do, unless they repeat
    without bound: then they take the rest of the character along.
    """
    match node:
        case Char(code=code):
            exact = code < 128 or not ignore_case
            return exact, exact
        case Any():
            return False, False
        case Set(negated=negated, ranges=ranges, classes=classes):
            exact = not negated and not (set(classes) - {"digit", "xdigit"}) and all(high < 128 for _, high in ranges)
            return exact, exact
        case Assert(kind=kind):
            exact = kind not in _WORD_KINDS
            return exact, exact
        case Repeat(body=Any(), low=low, high=None) if low <= 1:
            return False, True
        case Repeat(body=Set(negated=True, ranges=ranges, classes=classes), low=low, high=None) if low <= 1:
            plain = not (set(classes) - {"digit", "xdigit"}) and all(high < 128 for _, high in ranges)
            return False, plain
        case Cat(items=children) | Alt(branches=children):
            both = [_ascii_exact(child, ignore_case) for child in children]
            return all(one[0] for one in both), all(one[1] for one in both)
        case Group(body=body) | Repeat(body=body):
            return _ascii_exact(body, ignore_case)
        case _:
            return True, True


def _text_of(node: Node) -> str | None:
    items = node.items if isinstance(node, Cat) else (node,)
    if all(isinstance(item, Char) for item in items):
        return "".join(chr(item.code) for item in items if isinstance(item, Char))
    return None


def _literal(tree: Node) -> str:
    """The longest run of plain characters that every match contains."""
    best = run = ""
    for leaf in _sequence(tree):
        if isinstance(leaf, Char):
            run += chr(leaf.code)
            continue
        if isinstance(leaf, Assert):
            continue
        best = max(best, run, key=len)
        run = ""
        if isinstance(leaf, Repeat) and leaf.low and isinstance(leaf.body, Char):
            run = chr(leaf.body.code)
            best = max(best, run, key=len)
            run = ""
    return max(best, run, key=len)
