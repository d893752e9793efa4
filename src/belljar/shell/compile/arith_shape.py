"""Static analysis of arithmetic trees."""

from __future__ import annotations

from collections.abc import Iterator

from belljar.shell.nodes import (
    Arith,
    ArithAssign,
    ArithBinary,
    ArithConditional,
    ArithIncrement,
    ArithNode,
    ArithSubst,
    ArithUnary,
    ArithVariable,
    Literal,
    Param,
    Subscript,
    WordPart,
)


def _children(node: ArithNode) -> tuple[ArithNode, ...]:
    match node:
        case ArithUnary(_, operand):
            return (operand,)
        case ArithBinary(_, left, right):
            return (left, right)
        case ArithConditional(test, then, otherwise):
            return (test, then, otherwise)
        case ArithAssign(_, target, value):
            return (target, value)
        case ArithIncrement(target):
            return (target,)
        case ArithVariable(_, Subscript(_, Arith(_, expr))) if expr is not None:
            return (expr,)
        case _:
            return ()


def _walk(node: ArithNode, *, subscripts: bool = True) -> Iterator[ArithNode]:
    """A tree's nodes; by a loop, as a sum may be thousands deep."""
    stack = [node]
    while stack:
        item = stack.pop()
        yield item
        if subscripts or not isinstance(item, ArithVariable):
            stack += _children(item)


def substitutions_of(node: ArithNode) -> list[ArithSubst]:
    """The expansions that are operands; those in subscripts belong to the subscripts."""
    return [item for item in _walk(node, subscripts=False) if isinstance(item, ArithSubst)]


def expanded_subscripts(node: ArithNode) -> list[WordPart]:
    """The expansions in the subscripts of an expression."""
    found: list[WordPart] = []
    for item in _walk(node, subscripts=False):
        if isinstance(item, ArithVariable) and isinstance(item.index, Subscript):
            found += [part for part in item.index.word.parts if not isinstance(part, Literal)]
    return found


def changed_inside(node: ArithNode) -> set[str]:
    """The variables that something inside the expression assigns to (what it as a whole assigns comes last)."""
    return {
        item.target.name for item in _walk(node) if isinstance(item, ArithAssign | ArithIncrement) and item is not node
    }


def is_pure(part: WordPart) -> bool:
    return isinstance(part, Param) and part.op is None and not part.indirect and part.index is None


def has_effects(node: ArithNode) -> bool:
    """Whether it assigns, or may: what is in a subscript is known only when it could be parsed."""
    for item in _walk(node):
        match item:
            case ArithAssign() | ArithIncrement() | ArithVariable(_, Subscript(_, Arith(_, None))):
                return True
            case _:
                pass
    return False


def cannot_fail(node: ArithNode) -> bool:
    """Whether the evaluation itself raises no BareArithError (variables' values report their own errors)."""
    stack: list[ArithNode] = [node]
    while stack:
        match stack.pop():
            case ArithUnary(_, operand):
                stack.append(operand)
            case ArithBinary(op, left, right):
                if op in ("/", "%", "**"):
                    return False
                stack += (left, right)
            case ArithConditional(test, then, otherwise):
                stack += (test, then, otherwise)
            case ArithAssign(op, _, value):
                if op in ("/", "%", "**"):
                    return False
                stack.append(value)
            case _:
                pass
    return True
