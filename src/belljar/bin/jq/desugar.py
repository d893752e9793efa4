"""Builds syntax trees where jq's notation says less, or other, than the tree does."""

from typing import Any

from belljar.bin.jq.nodes import (
    Alternative,
    Array,
    Binary,
    Bind,
    BindVariable,
    Call,
    Comma,
    Function,
    Identity,
    Index,
    Iterate,
    Literal,
    Logic,
    Node,
    Object,
    Pipe,
    Slice,
    Try,
    Update,
    Variable,
    walk_nodes,
)

IDENTITY = Identity()


def plain_function(name: str, parameters: tuple[str, ...], body: Node) -> Function:
    """A definition. `def f($x): B` means `def f(x): x as $x | B`, which is spelled out if B calls x as a filter."""
    values = {parameter[1:] for parameter in parameters if parameter[0] == "$"}
    if not values or not any(isinstance(node, Call) and node.name in values for node in walk_nodes(body)):
        return Function(name, parameters, body)
    for parameter in reversed(parameters):
        if parameter[0] == "$":
            body = Bind(Call(parameter[1:], ()), (BindVariable(parameter[1:]),), body)
    return Function(name, tuple(parameter.removeprefix("$") for parameter in parameters), body)


def optional(term: Node) -> Node:
    """`T.f?`, `T[k]?`, `T[]?`: the access may fail quietly, T and k may not."""
    match term:
        case Iterate(target):
            return Pipe((target, Try(Iterate(IDENTITY), None)))
        case Index(target, key):
            if isinstance(key, Literal):
                return Pipe((target, Try(Index(IDENTITY, key), None)))
            access = Pipe((target, Try(Index(IDENTITY, Variable("*key")), None)))
            return Bind(key, (BindVariable("*key"),), access)
        case Slice(target, start, end):
            nothing = Literal(None)
            part = Slice(IDENTITY, Variable("*start"), Variable("*end"))
            inner = Bind(end or nothing, (BindVariable("*end"),), Pipe((target, Try(part, None))))
            return Bind(start or nothing, (BindVariable("*start"),), inner)
    return Try(term, None)


def combine(operator: str, left: Node, right: Node) -> Node:
    if operator == "//":
        return Alternative(left, right)
    if operator in ("and", "or"):
        return Logic(operator, left, right)
    if operator in ("==", "!=", "<=", ">=") or operator[-1] != "=":
        return Binary(operator, left, right)
    return Update(operator[:-1], left, right)


def constant_value(node: Node) -> tuple[Any] | None:
    """The value of a constant expression, in a tuple; None if it is not constant."""
    if isinstance(node, Literal):
        return (node.value,)
    if isinstance(node, Array):
        if node.body is None:
            return ([],)
        parts = node.body.parts if isinstance(node.body, Comma) else (node.body,)
        items = [constant_value(part) for part in parts]
        return ([item[0] for item in items if item is not None],) if None not in items else None
    if isinstance(node, Object):
        result: dict[str, Any] = {}
        for key, member in node.entries:
            name, value = constant_value(key), constant_value(member)
            if name is None or value is None:
                return None
            result[name[0]] = value[0]
        return (result,)
    return None
