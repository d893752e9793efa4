"""The parts of yq's language that jq's has not: its own names, YAML as text, environment values, `eval-all`."""

from functools import cache
from typing import Any

from belljar.abi.dataclass import replace
from belljar.bin.jq.access import iterate
from belljar.bin.jq.code import ONE, Code, Env, Scope
from belljar.bin.jq.compile import Compiler
from belljar.bin.jq.errors import JqError
from belljar.bin.jq.nodes import (
    Binary,
    Bind,
    Call,
    Function,
    Identity,
    Index,
    Iterate,
    Literal,
    Node,
    Pipe,
    Program,
    Reduce,
)
from belljar.bin.jq.parse import parse
from belljar.bin.jq.values import Value, kind_name, to_text
from belljar.bin.yq.nodes import YamlError
from belljar.bin.yq.reader import read_documents
from belljar.bin.yq.scalars import resolve
from belljar.bin.yq.writer import Writer

SOURCE = """
def upcase: ascii_upcase;
def downcase: ascii_downcase;
def to_json: tojson;
def to_json(n): tojson;
def from_json: fromjson;
def to_number: tonumber;
def to_string: tostring;
def sort_keys(f): f |= (if type == "object" then to_entries | sort_by(.key) | from_entries else . end);
def with(p; f): p |= f;
def explode(f): .;
def omit(ks): . as $in | ks as $ks | with_entries(select(.key | IN($ks[]) | not));
def split_doc: .;
def splitDoc: .;
"""
TAGS = {
    "null": "!!null",
    "boolean": "!!bool",
    "string": "!!str",
    "array": "!!seq",
    "object": "!!map",
}
INDEX_NAMES = ("fileIndex", "file_index", "fi")


@cache
def definitions() -> dict[tuple[str, int], Function]:
    return {(function.name, len(function.parameters)): function for function in parse(SOURCE).functions}


def to_yaml(value: Value) -> str:
    try:
        return Writer().write(value)
    except YamlError as error:
        raise JqError(str(error)) from None


def tag_of(value: Value) -> str:
    kind = kind_name(value)
    if kind == "number":
        return "!!int" if value.__class__ is int else "!!float"
    return TAGS[kind]


class Dialect:
    """Adds yq's builtins to a compiler; `state` tells which document is being worked on."""

    def __init__(self, compiler: Compiler, state: dict[str, Any]) -> None:
        self.compiler = compiler
        self.state = state
        plus = compiler.operators["+"]
        # yq's + puts anything at the end of an array.
        compiler.operators["+"] = lambda a, b: (
            [*a, b] if isinstance(a, list) and b is not None and not isinstance(b, list) else plus(a, b)
        )
        for key, function in definitions().items():
            compiler.library[key] = compiler.root.define(function)
        compiler.formats = {**compiler.formats, "yaml": to_yaml, "yamld": self.from_yaml}
        compiler.forms = {
            ("env", 1): self.variable(resolve),
            ("strenv", 1): self.variable(str),
            ("to_yaml", 0): self.plain(to_yaml),
            ("from_yaml", 0): self.plain(self.from_yaml),
            ("tag", 0): self.plain(tag_of),
            ("filename", 0): self.known("filename"),
            ("document_index", 0): self.known("document"),
            ("documentIndex", 0): self.known("document"),
            ("di", 0): self.known("document"),
            **{(name, 0): self.known("file") for name in INDEX_NAMES},
            ("pick", 1): self.pick,
        }

    def from_yaml(self, text: Value) -> Value:
        if not isinstance(text, str):
            raise JqError(f"{kind_name(text)} cannot be parsed as YAML")
        try:
            documents = read_documents(text, self.compiler.charge)
        except YamlError as error:
            raise JqError(str(error)) from None
        return documents[0].root.value if documents else None

    def plain(self, function: Any) -> Any:
        return lambda compiler, scope, arguments: Code(ONE, lambda v, e: function(v))

    def known(self, name: str) -> Any:
        return lambda compiler, scope, arguments: Code(ONE, lambda v, e: self.state.get(name))

    def variable(self, read: Any) -> Any:
        """`env(NAME)` and `strenv(NAME)`: the argument is a bare word."""

        def form(compiler: Compiler, scope: Scope, arguments: tuple[Node, ...]) -> Code:
            name = arguments[0].name if isinstance(arguments[0], Call) else None
            environment = compiler.runtime.environment

            def run(v: Value, e: Env) -> Value:
                if name is None or name not in environment():
                    raise JqError(f"value for env variable '{name}' not provided in env()")
                return read(environment()[name])

            return Code(ONE, run)

        return form

    def pick(self, compiler: Compiler, scope: Scope, arguments: tuple[Node, ...]) -> Code:
        """`pick(["a", "b"])` by keys, as yq has it, besides jq's by paths."""
        from belljar.bin.jq.builtins.registry import FORMS

        if not isinstance(arguments[0], Literal) and type(arguments[0]).__name__ != "Array":
            return FORMS["pick", 1](compiler, scope, arguments)

        def chosen(v: Value, names: Value) -> Value:
            if isinstance(v, list):
                return [v[int(place)] for place in iterate(names) if 0 <= int(place) < len(v)]
            return {to_text(name): v[to_text(name)] for name in iterate(names) if to_text(name) in v}

        return compiler.native(chosen, arguments, scope)


def over_all(program: Program) -> Program:
    """`eval-all`: `.` stands for every document where yq's idioms use it so; the input is their list."""
    body = program.body if program.body is not None else Identity()
    changed = _spread(body)
    if changed == body:
        changed = Pipe((Iterate(Identity()), body))
    return replace(program, body=changed)


def _spread(node: Node) -> Node:
    match node:
        case Reduce(source=Identity()):
            return replace(node, source=Iterate(Identity()))
        case Bind(source=Identity()):
            return replace(node, source=Iterate(Identity()))
        case Call(name="select", arguments=(Binary("==", Call(name=name), Literal(value=place)),)) if (
            name in INDEX_NAMES
        ):
            return Index(Identity(), Literal(place))
        case Binary(operator, left, right):
            return Binary(operator, _spread(left), _spread(right))
        case Pipe(parts):
            return Pipe((_spread(parts[0]), *parts[1:]))
    return node
