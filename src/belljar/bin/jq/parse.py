"""Parses jq program text into its syntax tree: precedence climbing over jq 1.8's grammar."""

from typing import Any

from belljar.bin.jq.desugar import IDENTITY, combine, constant_value, optional, plain_function
from belljar.bin.jq.lexer import SyntaxProblem, Token, tokenize
from belljar.bin.jq.nodes import (
    Array,
    Bind,
    BindArray,
    BindObject,
    BindVariable,
    BreakOut,
    Call,
    Comma,
    Define,
    Foreach,
    Format,
    Function,
    If,
    Import,
    Index,
    Iterate,
    Label,
    Literal,
    Location,
    Negate,
    Node,
    Object,
    Pattern,
    Pipe,
    Program,
    RecurseDefault,
    Reduce,
    Slice,
    Text,
    Try,
    Variable,
)
from belljar.bin.jq.numbers import negate, parse_literal
from belljar.bin.jq.values import describe, is_number

MAX_NESTING = 1_000
# operator -> (binding strength, associativity)
OPERATORS: dict[str, tuple[int, str]] = {
    "//": (1, "right"),
    "=": (2, "none"),
    "|=": (2, "none"),
    "+=": (2, "none"),
    "-=": (2, "none"),
    "*=": (2, "none"),
    "/=": (2, "none"),
    "%=": (2, "none"),
    "//=": (2, "none"),
    "or": (3, "left"),
    "and": (4, "left"),
    "==": (5, "none"),
    "!=": (5, "none"),
    "<": (5, "none"),
    "<=": (5, "none"),
    ">": (5, "none"),
    ">=": (5, "none"),
    "+": (6, "left"),
    "-": (6, "left"),
    "*": (7, "left"),
    "/": (7, "left"),
    "%": (7, "left"),
}


def parse(source: str, file: str = "<top-level>", ireduce: bool = False) -> Program:
    """The program `source` is. SyntaxProblem if it is none. `ireduce`: allow yq's `. as $x ireduce (...)`."""
    parser = Parser(source, ireduce)
    try:
        return parser.program(file)
    except RecursionError:
        raise SyntaxProblem("memory exhausted: the program is nested too deeply", parser.peek().at) from None


class Parser:
    def __init__(self, source: str, ireduce: bool = False) -> None:
        self.source = source
        self.ireduce = ireduce
        self.tokens = tokenize(source)
        self.position = 0
        self.nesting = 0

    # Tokens

    def peek(self, ahead: int = 0) -> Token:
        index = self.position + ahead
        return self.tokens[index] if index < len(self.tokens) else self.tokens[-1]

    def take(self) -> Token:
        token = self.tokens[self.position]
        if token.kind != "end":
            self.position += 1
        return token

    def at(self, text: str) -> bool:
        token = self.tokens[self.position]
        return token.text == text and (token.kind == "mark" or token.kind == "keyword")

    def accept(self, text: str) -> bool:
        if self.at(text):
            self.position += 1
            return True
        return False

    def expect(self, text: str) -> Token:
        if not self.at(text):
            raise self.unexpected()
        return self.take()

    def unexpected(self) -> SyntaxProblem:
        token = self.peek()
        what = {
            "end": "end of file",
            "name": "IDENT",
            "field": "FIELD",
            "variable": "BINDING",
            "number": "LITERAL",
            "format": "FORMAT",
            '"': "QQSTRING_START",
            "text": "QQSTRING_TEXT",
            "close": "QQSTRING_END",
            "\\(": "QQSTRING_INTERP_START",
            "\\)": "QQSTRING_INTERP_END",
            "keyword": token.text,
        }.get(token.kind)
        if what is None:
            what = token.text if len(token.text) > 1 else f"'{token.text}'"
        return SyntaxProblem(f"syntax error, unexpected {what}", token.at, token.at + max(1, len(token.text)))

    # Programs and modules

    def program(self, file: str) -> Program:
        metadata = None
        if self.accept("module"):
            metadata = self.constant_object()
            self.expect(";")
        imports = []
        while self.at("import") or self.at("include"):
            imports.append(self.import_())
        functions = []
        while self.at("def"):
            functions.append(self.function())
        body: Node | None = None
        if self.peek().kind != "end":
            body = self.query()
            if self.peek().kind != "end":
                raise self.unexpected()
        return Program(metadata, tuple(imports), tuple(functions), body, self.source, file)

    def constant_object(self) -> dict[str, Any]:
        token = self.peek()
        constant = constant_value(self.query())
        if constant is None:
            raise SyntaxProblem("Module metadata must be constant", token.at)
        if not isinstance(constant[0], dict):
            raise SyntaxProblem("Module metadata must be an object", token.at)
        return constant[0]

    def import_(self) -> Import:
        keyword = self.take()
        token = self.peek()
        if token.kind != '"':
            raise self.unexpected()
        text = self.string("text")
        if not isinstance(text, Literal):
            raise SyntaxProblem("Import path must be constant", token.at)
        name, data = None, False
        if keyword.text == "import":
            self.expect("as")
            token = self.take()
            if token.kind not in ("name", "variable"):
                self.position -= 1
                raise self.unexpected()
            name, data = token.text, token.kind == "variable"
        metadata = {} if self.at(";") else self.constant_object()
        self.expect(";")
        return Import(text.value, name, data, metadata)

    def function(self) -> Function:
        self.expect("def")
        token = self.take()
        if token.kind not in ("name", "keyword"):
            self.position -= 1
            raise self.unexpected()
        parameters = []
        if self.accept("("):
            while True:
                parameter = self.take()
                if parameter.kind not in ("name", "variable", "keyword"):
                    self.position -= 1
                    raise self.unexpected()
                parameters.append(("$" if parameter.kind == "variable" else "") + parameter.text)
                if not self.accept(";"):
                    break
            self.expect(")")
        self.expect(":")
        body = self.query()
        self.expect(";")
        return plain_function(token.text, tuple(parameters), body)

    # Queries: definitions, bindings, pipes and commas

    def query(self, commas: bool = True) -> Node:
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            raise SyntaxProblem("memory exhausted: the program is nested too deeply", self.peek().at)
        stages: list[Node] = []
        while True:
            stage, final = self.stage(commas)
            stages.append(stage)
            if final or not self.accept("|"):
                break
        self.nesting -= 1
        return stages[0] if len(stages) == 1 else Pipe(tuple(stages))

    def stage(self, commas: bool) -> tuple[Node, bool]:
        """Parse the text between two `|`; final if it consumed the rest of the query, as `as` does."""
        alternatives: list[Node] = []
        while True:
            item, final = self.item(commas)
            alternatives.append(item)
            if final or not (commas and self.accept(",")):
                break
        return (alternatives[0] if len(alternatives) == 1 else Comma(tuple(alternatives))), final

    def item(self, commas: bool) -> tuple[Node, bool]:
        if self.at("def"):
            function = self.function()
            return Define(function, self.query(commas)), True
        if self.at("label"):
            self.take()
            name = self.take()
            if name.kind != "variable":
                self.position -= 1
                raise self.unexpected()
            self.expect("|")
            return Label(name.text, self.query(commas)), True
        expression = self.expression(0)
        if self.accept("as"):
            patterns = self.patterns()
            if self.ireduce and self.peek().text == "ireduce":
                self.take()
                return self.fold_body("reduce", expression, patterns), False
            self.expect("|")
            return Bind(expression, patterns, self.query(commas)), True
        return expression, False

    def expression(self, minimum: int) -> Node:
        left = self.unary()
        while True:
            token = self.peek()
            if token.kind not in ("mark", "keyword"):
                return left
            entry = OPERATORS.get(token.text)
            if entry is None or (entry[0] <= minimum and not (entry[0] == minimum and entry[1] == "right")):
                return left
            strength, associativity = entry
            self.take()
            # A right operand of a right-associative operator may contain the operator itself.
            right = self.operand(strength)
            left = combine(token.text, left, right)
            if associativity == "none":
                follower = self.peek()
                again = OPERATORS.get(follower.text) if follower.kind in ("mark", "keyword") else None
                if again is not None and again[0] == strength:
                    raise self.unexpected()

    def operand(self, strength: int) -> Node:
        if self.at("def") or self.at("label"):
            return self.item(True)[0]
        return self.expression(strength)

    def unary(self) -> Node:
        if self.at("-"):
            self.nesting += 1
            if self.nesting > MAX_NESTING:
                raise SyntaxProblem("memory exhausted: the program is nested too deeply", self.peek().at)
            self.take()
            body = self.unary()
            self.nesting -= 1
            if isinstance(body, Literal) and is_number(body.value):
                return Literal(negate(body.value))
            return Negate(body)
        return self.postfix()

    # Terms

    def postfix(self) -> Node:
        term = self.term()
        last = self.tokens[self.position - 1]
        accessed = last.kind in ("field", "close") or last.text == "]"
        while True:
            token = self.peek()
            if token.kind == "field":
                self.take()
                term = Index(term, Literal(token.text))
            elif token.kind != "mark":
                return term
            elif token.text == "[":
                self.take()
                term = self.brackets(term)
            elif token.text == "?":
                self.take()
                term = optional(term) if accessed else Try(term, None)
                accessed = False
                continue
            elif token.text == ".":
                follower = self.peek(1)
                if follower.kind == '"' or (follower.kind == "format" and self.peek(2).kind == '"'):
                    self.take()
                    term = Index(term, self.string_term())
                elif follower.kind == "mark" and follower.text == "[":
                    self.take()
                    self.take()
                    term = self.brackets(term)
                else:
                    raise self.unexpected()
            else:
                return term
            accessed = True

    def brackets(self, target: Node) -> Node:
        """Parse an index, a slice or an iteration, after `[`."""
        if self.accept("]"):
            return Iterate(target)
        if self.accept(":"):
            end = self.query()
            self.expect("]")
            return Slice(target, None, end)
        key = self.query()
        if self.accept(":"):
            last = None if self.at("]") else self.query()
            self.expect("]")
            return Slice(target, key, last)
        self.expect("]")
        return Index(target, key)

    def term(self) -> Node:
        token = self.take()
        kind, text = token.kind, token.text
        if kind == "number":
            return Literal(parse_literal(text))
        if kind == '"' or kind == "format":
            self.position -= 1
            return self.string_term()
        if kind == "field":
            return Index(IDENTITY, Literal(text))
        if kind == "variable":
            if text == "__loc__":
                return Location(self.source.count("\n", 0, token.at) + 1)
            return Variable(text, token.at)
        if kind == "name":
            return self.call(token)
        if kind == "mark":
            return self.marked_term(token)
        if kind == "keyword":
            return self.keyword_term(token)
        self.position -= token.kind != "end"
        raise self.unexpected()

    def marked_term(self, token: Token) -> Node:
        text = token.text
        if text == ".":
            follower = self.peek()
            if follower.kind == '"' or (follower.kind == "format" and self.peek(1).kind == '"'):
                return Index(IDENTITY, self.string_term())
            if follower.kind == "mark" and follower.text == "[":
                self.take()
                return self.brackets(IDENTITY)
            return IDENTITY
        if text == "..":
            return RecurseDefault()
        if text == "(":
            body = self.query()
            self.expect(")")
            return body
        if text == "[":
            if self.accept("]"):
                return Array(None)
            body = self.query()
            self.expect("]")
            return Array(body)
        if text == "{":
            return self.object()
        if text == "-":
            self.position -= 1
            return self.unary()
        self.position -= 1
        raise self.unexpected()

    def keyword_term(self, token: Token) -> Node:
        text = token.text
        if text == "if":
            return self.if_()
        if text == "try":
            body = self.unary()
            handler = self.unary() if self.accept("catch") else None
            return Try(body, handler if handler is not None else None)
        if text == "reduce" or text == "foreach":
            return self.fold(text)
        if text == "break":
            name = self.take()
            if name.kind != "variable":
                raise SyntaxProblem("break requires a label to break to", token.at)
            return BreakOut(name.text, token.at)
        if text == "def" or text == "label":
            self.position -= 1
            return self.item(True)[0]
        self.position -= 1
        raise self.unexpected()

    def if_(self) -> Node:
        branches = []
        while True:
            condition = self.query()
            self.expect("then")
            branches.append((condition, self.query()))
            if not self.accept("elif"):
                break
        otherwise = self.query() if self.accept("else") else None
        self.expect("end")
        for condition, then in reversed(branches):
            otherwise = If(condition, then, otherwise)
        assert otherwise is not None  # there is at least one branch
        return otherwise

    def fold(self, keyword: str) -> Node:
        source = self.expression(0)
        self.expect("as")
        return self.fold_body(keyword, source, self.patterns())

    def fold_body(self, keyword: str, source: Node, patterns: tuple[Pattern, ...]) -> Node:
        self.expect("(")
        initial = self.query()
        self.expect(";")
        update = self.query()
        if keyword == "reduce":
            self.expect(")")
            return Reduce(source, patterns, initial, update)
        extract = self.query() if self.accept(";") else None
        self.expect(")")
        return Foreach(source, patterns, initial, update, extract)

    def call(self, token: Token) -> Node:
        constant = {"null": (None,), "true": (True,), "false": (False,)}.get(token.text)
        arguments: list[Node] = []
        if self.accept("("):
            while True:
                arguments.append(self.query())
                if not self.accept(";"):
                    break
            self.expect(")")
        elif constant is not None:
            return Literal(constant[0])
        return Call(token.text, tuple(arguments), token.at)

    def string_term(self) -> Node:
        token = self.peek()
        if token.kind == "format":
            self.take()
            if self.peek().kind != '"':
                return Format(token.text)
            return self.string(token.text)
        return self.string("text")

    def string(self, format_name: str) -> Node:
        self.take()
        parts: list[str | Node] = []
        while True:
            token = self.take()
            if token.kind == "close":
                break
            if token.kind == "text":
                if parts and isinstance(parts[-1], str):
                    parts[-1] += token.text
                else:
                    parts.append(token.text)
            elif token.kind == "\\(":
                parts.append(self.query())
                if self.peek().kind != "\\)":
                    raise self.unexpected()
                self.take()
            else:
                self.position -= token.kind != "end"
                raise self.unexpected()
        if not parts:
            return Literal("")
        if len(parts) == 1 and isinstance(parts[0], str):
            return Literal(parts[0])
        return Text(tuple(parts), format_name)

    # Objects and patterns

    def object(self) -> Node:
        entries: list[tuple[Node, Node]] = []
        while not self.accept("}"):
            entries.append(self.entry())
            if not self.accept(","):
                self.expect("}")
                break
        return Object(tuple(entries))

    def entry(self) -> tuple[Node, Node]:
        token = self.take()
        key: Node
        default: Node | None = None
        if token.kind == "variable":
            if token.text == "__loc__":
                key = Literal("__loc__")
                default = Location(self.source.count("\n", 0, token.at) + 1)
                return key, default
            key = Variable(token.text, token.at)
            default = key
            if not self.at(":"):
                return Literal(token.text), default
        elif token.kind in ("name", "keyword"):
            key = Literal(token.text)
            default = Index(IDENTITY, key)
        elif token.kind == "number":
            key = Literal(parse_literal(token.text))
        elif token.kind == '"' or token.kind == "format":
            self.position -= 1
            key = self.string_term()
            default = Index(IDENTITY, key)
        elif token.kind == "mark" and token.text == "(":
            key = self.query()
            self.expect(")")
        else:
            self.position -= token.kind != "end"
            raise self.unexpected()
        if isinstance(key, Literal) and not isinstance(key.value, str):
            raise SyntaxProblem(f"Cannot use {describe(key.value)} as object key", token.at)
        if default is not None and not self.at(":"):
            return key, default
        self.expect(":")
        return key, self.query(commas=False)

    def patterns(self) -> tuple[Pattern, ...]:
        found = [self.pattern()]
        while self.accept("?//"):
            found.append(self.pattern())
        return tuple(found)

    def pattern(self) -> Pattern:
        token = self.take()
        if token.kind == "variable":
            return BindVariable(token.text)
        if token.kind == "mark" and token.text == "[":
            items = [self.pattern()]
            while self.accept(","):
                items.append(self.pattern())
            self.expect("]")
            return BindArray(tuple(items))
        if token.kind == "mark" and token.text == "{":
            entries = [self.pattern_entry()]
            while self.accept(","):
                entries.append(self.pattern_entry())
            self.expect("}")
            return BindObject(tuple(entries))
        self.position -= token.kind != "end"
        raise self.unexpected()

    def pattern_entry(self) -> tuple[Node, str | None, Pattern | None]:
        token = self.take()
        if token.kind == "variable":
            inner = self.pattern() if self.accept(":") else None
            return Literal(token.text), token.text, inner
        key: Node
        if token.kind in ("name", "keyword"):
            key = Literal(token.text)
        elif token.kind == '"' or token.kind == "format":
            self.position -= 1
            key = self.string_term()
        elif token.kind == "mark" and token.text == "(":
            key = self.query()
            self.expect(")")
            if isinstance(key, Literal) and not isinstance(key.value, str):
                raise SyntaxProblem(f"Cannot use {describe(key.value)} as object key", token.at)
        else:
            self.position -= token.kind != "end"
            raise self.unexpected()
        self.expect(":")
        return key, None, self.pattern()
