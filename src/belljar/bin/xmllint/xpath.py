"""XPath 1.0 over our trees: parsed by recursive descent and evaluated as it is read into closures."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from math import ceil, floor, isfinite, isnan
from typing import Final

from belljar.abi.dataclass import dataclass
from belljar.bin.xmllint.tree import Attribute, Comment, Element, Instruction, Node, Text
from belljar.kernel.budget import Budget

Value = list[Node] | str | float | bool
_TOKEN: Final = re.compile(
    r"""\s*(//|::|\.\.|!=|<=|>=|"[^"]*"|'[^']*'|\d+(?:\.\d*)?|\.\d+|[A-Za-z_][\w.-]*(?::(?!:)(?:[A-Za-z_][\w.-]*|\*))?"""
    r"""|[()\[\]@,|+\-*=<>/.])""",
    re.DOTALL,
)
_DEPTH_MAX: Final = 64
_KINDS: Final[dict[str, Callable[[Node], bool]]] = {
    "node": lambda node: True,
    "text": lambda node: isinstance(node, Text),
    "comment": lambda node: isinstance(node, Comment),
    "processing-instruction": lambda node: isinstance(node, Instruction),
}


class XPathError(Exception):
    """An expression that can't be read; `place` is where."""

    def __init__(self, place: int) -> None:
        super().__init__("Invalid expression")
        self.place = place


@dataclass(slots=True)
class Context:
    """The evaluation context of an expression."""

    node: Node
    position: int
    size: int
    budget: Budget


Expression = Callable[[Context], Value]


def string(value: Value) -> str:
    if isinstance(value, list):
        return text_of(value[0]) if value else ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if isnan(value):
            return "NaN"
        if not isfinite(value):
            return "Infinity" if value > 0 else "-Infinity"
        return str(int(value)) if value == int(value) else repr(value)
    return value


def text_of(node: Node) -> str:
    """A node's string-value."""
    if isinstance(node, Element):
        return "".join(leaf.value for leaf in descendants(node) if isinstance(leaf, Text))
    return node.value if isinstance(node, Text | Comment | Instruction | Attribute) else ""


def number(value: Value) -> float:
    if isinstance(value, float | bool):
        return float(value)
    text = string(value).strip()
    return float(text) if re.fullmatch(r"-?(?:\d+(?:\.\d*)?|\.\d+)", text) else float("nan")


def boolean(value: Value) -> bool:
    return bool(value) and not (isinstance(value, float) and isnan(value))


def descendants(element: Element) -> Iterator[Node]:
    stack = list(reversed(element.children))
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, Element):
            stack += reversed(node.children)


def _siblings(node: Node) -> list[Node]:
    return node.parent.children if node.parent is not None and not isinstance(node, Attribute) else []


def _ancestors(node: Node) -> Iterator[Node]:
    parent = node.parent
    while parent is not None:
        yield parent
        parent = parent.parent


def _after(node: Node) -> list[Node]:
    siblings = _siblings(node)
    return siblings[siblings.index(node) + 1 :] if siblings else []


def _before(node: Node) -> list[Node]:
    siblings = _siblings(node)
    return siblings[: siblings.index(node)][::-1] if siblings else []


AXES: Final[dict[str, Callable[[Node], Iterable[Node]]]] = {
    "child": lambda node: node.children if isinstance(node, Element) else [],
    "descendant": lambda node: descendants(node) if isinstance(node, Element) else [],
    "descendant-or-self": lambda node: [node, *(descendants(node) if isinstance(node, Element) else [])],
    "self": lambda node: [node],
    "parent": lambda node: [node.parent] if node.parent is not None else [],
    "ancestor": _ancestors,
    "ancestor-or-self": lambda node: [node, *_ancestors(node)],
    "attribute": lambda node: (
        [a for a in node.attributes if not a.name.startswith("xmlns")] if isinstance(node, Element) else []
    ),
    "following-sibling": _after,
    "preceding-sibling": _before,
}


class Parser:
    """One expression."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str, int]] = []
        place = 0
        stripped = len(text.rstrip())
        while place < stripped:
            found = _TOKEN.match(text, place)
            if found is None:
                raise XPathError(place)
            self._tokens.append((found[1], found.start(1)))
            place = found.end()
        self._at = 0
        self._depth = 0

    def parse(self) -> Expression:
        result = self._binary(0)
        if self._at < len(self._tokens):
            raise XPathError(self._place())
        return result

    def _peek(self, ahead: int = 0) -> str:
        return self._tokens[self._at + ahead][0] if self._at + ahead < len(self._tokens) else ""

    def _place(self) -> int:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else len(self._text)

    def _take(self, word: str | None = None) -> str:
        found = self._peek()
        if not found or (word is not None and found != word):
            raise XPathError(self._place())
        self._at += 1
        return found

    def _binary(self, level: int) -> Expression:
        if level == len(_LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while (operator := self._peek()) in _LEVELS[level]:
            self._at += 1
            left = _combine(_LEVELS[level][operator], left, self._binary(level + 1))
        return left

    def _unary(self) -> Expression:
        if self._peek() == "-":
            self._at += 1
            inner = self._unary()
            return lambda context: -number(inner(context))
        left = self._path()
        while self._peek() == "|":
            self._at += 1
            left = _combine(_union, left, self._path())
        return left

    def _path(self) -> Expression:
        word = self._peek()
        start: Expression | None = None
        steps: list[Callable[[Context], list[Node]]] = []
        if word in ("/", "//"):
            start = _root
            self._at += 1
            if word == "//":
                steps.append(_step("descendant-or-self", _KINDS["node"], []))
            elif not self._starts_step():
                return start
        elif self._is_primary(word):
            start = self._primary()
            filters = self._predicates()
            if filters:
                start = _filtered(start, filters)
            if self._peek() not in ("/", "//"):
                return start
            if self._take() == "//":
                steps.append(_step("descendant-or-self", _KINDS["node"], []))
        steps.append(self._step())
        while self._peek() in ("/", "//"):
            if self._take() == "//":
                steps.append(_step("descendant-or-self", _KINDS["node"], []))
            steps.append(self._step())
        return _walk(start, steps)

    def _starts_step(self) -> bool:
        word = self._peek()
        return word in (".", "..", "@", "*") or bool(re.match(r"[A-Za-z_]", word))

    def _is_primary(self, word: str) -> bool:
        if word[:1] in ("'", '"', "(") or word[:1].isdigit() or re.match(r"\.\d", word):
            return True
        return self._peek(1) == "(" and bool(re.match(r"[A-Za-z_]", word)) and word not in _KINDS

    def _primary(self) -> Expression:
        word = self._take()
        if word == "(":
            self._depth += 1
            if self._depth > _DEPTH_MAX:
                raise XPathError(self._place())
            inner = self._binary(0)
            self._depth -= 1
            self._take(")")
            return inner
        if word[0] in "'\"":
            return lambda _: word[1:-1]
        if word[0].isdigit() or word[0] == ".":
            value = float(word)
            return lambda _: value
        place = self._at - 1
        self._take("(")
        arguments: list[Expression] = []
        while self._peek() != ")":
            if arguments:
                self._take(",")
            arguments.append(self._binary(0))
        self._take(")")
        function = FUNCTIONS.get(word)
        if function is None:
            raise XPathError(self._tokens[place][1])
        return lambda context: function(context, [argument(context) for argument in arguments])

    def _predicates(self) -> list[Expression]:
        found: list[Expression] = []
        while self._peek() == "[":
            self._at += 1
            found.append(self._binary(0))
            self._take("]")
        return found

    def _step(self) -> Callable[[Context], list[Node]]:
        word = self._take()
        if word == ".":
            return _step("self", _KINDS["node"], [])
        if word == "..":
            return _step("parent", _KINDS["node"], [])
        axis = "child"
        if word == "@":
            axis, word = "attribute", self._take()
        elif self._peek() == "::":
            if word not in AXES:
                raise XPathError(self._place())
            self._at += 1
            axis, word = word, self._take()
        if self._peek() == "(" and word in _KINDS:
            self._at += 1
            if self._peek() != ")":
                self._at += 1
            self._take(")")
            return _step(axis, _KINDS[word], self._predicates())
        if word != "*" and not re.match(r"[A-Za-z_]", word):
            self._at -= 1
            raise XPathError(self._place())
        return _step(axis, _name_test(word), self._predicates())


def _name_test(name: str) -> Callable[[Node], bool]:
    if name == "*":
        return lambda node: isinstance(node, Element | Attribute)
    if name.endswith(":*"):
        prefix = name[:-1]
        return lambda node: isinstance(node, Element | Attribute) and node.name.startswith(prefix)
    return lambda node: (
        isinstance(node, Element | Attribute)
        and node.name == name
        and not (isinstance(node, Element) and node.namespace)
    )


def _step(axis: str, test: Callable[[Node], bool], predicates: list[Expression]) -> Callable[[Context], list[Node]]:
    go = AXES[axis]

    def run(context: Context) -> list[Node]:
        found = []
        for node in go(context.node):
            context.budget.charge()
            if test(node):
                found.append(node)
        return _filter(found, predicates, context.budget)

    return run


def _filter(nodes: list[Node], predicates: list[Expression], budget: Budget) -> list[Node]:
    for predicate in predicates:
        kept = []
        for position, node in enumerate(nodes, 1):
            value = predicate(Context(node, position, len(nodes), budget))
            if position == value if isinstance(value, float) else boolean(value):
                kept.append(node)
        nodes = kept
    return nodes


def _filtered(start: Expression, predicates: list[Expression]) -> Expression:
    return lambda context: _filter(_nodes(start(context)), predicates, context.budget)


def _nodes(value: Value) -> list[Node]:
    return value if isinstance(value, list) else []


def _root(context: Context) -> Value:
    node = context.node
    while node.parent is not None:
        node = node.parent
    return [node]


def _walk(start: Expression | None, steps: list[Callable[[Context], list[Node]]]) -> Expression:
    def run(context: Context) -> Value:
        nodes = [context.node] if start is None else _nodes(start(context))
        for step in steps:
            found: dict[int, Node] = {}
            for position, node in enumerate(nodes, 1):
                for result in step(Context(node, position, len(nodes), context.budget)):
                    found[id(result)] = result
            nodes = sorted(found.values(), key=lambda node: node.order)
        return nodes

    return run


def _combine(operator: Callable[[Value, Value], Value], left: Expression, right: Expression) -> Expression:
    return lambda context: operator(left(context), right(context))


def _union(left: Value, right: Value) -> Value:
    return sorted({id(node): node for node in [*_nodes(left), *_nodes(right)]}.values(), key=lambda node: node.order)


def _compare(test: Callable[[float, float], bool], same: bool | None = None) -> Callable[[Value, Value], Value]:
    """A comparison; of sets it holds if it does for any of their members. `same`: it is = or !=."""

    def one(left: Value, right: Value) -> bool:
        if same is not None:
            if isinstance(left, bool) or isinstance(right, bool):
                return (boolean(left) == boolean(right)) is same
            if not isinstance(left, float) and not isinstance(right, float):
                return (string(left) == string(right)) is same
        return test(number(left), number(right))

    def run(left: Value, right: Value) -> Value:
        if isinstance(left, list) and not isinstance(right, bool):
            return any(bool(run(text_of(node), right)) for node in left)
        if isinstance(right, list) and not isinstance(left, bool):
            return any(one(left, text_of(node)) for node in right)
        return one(left, right)

    return run


_Operator = Callable[[Value, Value], Value]
_LEVELS: Final[tuple[dict[str, _Operator], ...]] = (
    {"or": lambda a, b: boolean(a) or boolean(b)},
    {"and": lambda a, b: boolean(a) and boolean(b)},
    {"=": _compare(lambda a, b: a == b, True), "!=": _compare(lambda a, b: a != b, False)},
    {
        "<": _compare(lambda a, b: a < b),
        ">": _compare(lambda a, b: a > b),
        "<=": _compare(lambda a, b: a <= b),
        ">=": _compare(lambda a, b: a >= b),
    },
    {"+": lambda a, b: number(a) + number(b), "-": lambda a, b: number(a) - number(b)},
    {
        "*": lambda a, b: number(a) * number(b),
        "div": lambda a, b: number(a) / number(b) if number(b) else float("nan"),
        "mod": lambda a, b: float(number(a) - number(b) * int(number(a) / number(b))) if number(b) else float("nan"),
    },
)


def _here(context: Context, args: list[Value]) -> Value:
    return args[0] if args else [context.node]


def _name(context: Context, args: list[Value]) -> str:
    nodes = _nodes(_here(context, args))
    node = nodes[0] if nodes else None
    return node.name if isinstance(node, Element | Attribute | Instruction) else ""


def _substring(_: Context, args: list[Value]) -> Value:
    text, start = string(args[0]), number(args[1])
    if isnan(start):
        return ""
    first = floor(start + 0.5)
    last = len(text) + 1 if len(args) < 3 else first + floor(number(args[2]) + 0.5)
    return text[max(first, 1) - 1 : max(last - 1, 0)]


def _translate(_: Context, args: list[Value]) -> Value:
    text, old, new = (string(arg) for arg in args[:3])
    table: dict[int, str | None] = {}
    for place, char in enumerate(old):
        table.setdefault(ord(char), new[place] if place < len(new) else None)
    return text.translate(table)


FUNCTIONS: Final[dict[str, Callable[[Context, list[Value]], Value]]] = {
    "last": lambda context, _: float(context.size),
    "position": lambda context, _: float(context.position),
    "count": lambda _, args: float(len(_nodes(args[0]))) if args else 0.0,
    "name": _name,
    "local-name": lambda context, args: _name(context, args).rpartition(":")[2],
    "string": lambda context, args: string(_here(context, args)),
    "concat": lambda _, args: "".join(string(arg) for arg in args),
    "starts-with": lambda _, args: string(args[0]).startswith(string(args[1])),
    "contains": lambda _, args: string(args[1]) in string(args[0]),
    "substring-before": lambda _, args: (
        string(args[0]).partition(string(args[1]))[0] if string(args[1]) in string(args[0]) else ""
    ),
    "substring-after": lambda _, args: string(args[0]).partition(string(args[1]))[2],
    "substring": _substring,
    "string-length": lambda context, args: float(len(string(_here(context, args)))),
    "normalize-space": lambda context, args: " ".join(string(_here(context, args)).split()),
    "translate": _translate,
    "boolean": lambda _, args: boolean(args[0]),
    "not": lambda _, args: not boolean(args[0]),
    "true": lambda _, __: True,
    "false": lambda _, __: False,
    "number": lambda context, args: number(_here(context, args)),
    "sum": lambda _, args: float(sum(number(text_of(node)) for node in _nodes(args[0]))),
    "floor": lambda _, args: float(floor(number(args[0]))),
    "ceiling": lambda _, args: float(ceil(number(args[0]))),
    "round": lambda _, args: float(floor(number(args[0]) + 0.5)),
}


def evaluate(text: str, root: Node, budget: Budget) -> Value:
    """XPathError."""
    expression = Parser(text).parse()
    try:
        return expression(Context(root, 1, 1, budget))
    except (IndexError, OverflowError, ValueError):  # too few arguments, or a number no function takes
        raise XPathError(len(text)) from None
