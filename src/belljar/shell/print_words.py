"""Words back to source text, as bash stores them."""

from __future__ import annotations

from collections.abc import Callable

from belljar.shell.nodes import (
    AllElements,
    AnsiQuoted,
    ArithSub,
    ArrayElement,
    ArrayLiteral,
    Assignment,
    BackquoteSub,
    BadSubstitution,
    ChangeCase,
    Command,
    CommandSub,
    Default,
    DoubleQuoted,
    Escaped,
    Index,
    Length,
    Literal,
    LocaleQuoted,
    Param,
    ParamKeys,
    ParamNames,
    ParamOp,
    ProcSub,
    Replace,
    SingleQuoted,
    Slice,
    Strip,
    Tilde,
    Transform,
    Word,
    WordPart,
)

#: Prints the body of a command or process substitution.
BodyPrinter = Callable[[Command], str]


def single_quote(text: str) -> str:
    """`text` between single quotes, as bash's sh_single_quote does it."""
    return "\\'" if text == "'" else "'" + text.replace("'", "'\\''") + "'"


class WordPrinter:
    """Prints words; the commands in them go through `body`."""

    def __init__(self, body: BodyPrinter) -> None:
        self._body = body

    def word(self, word: Word) -> str:
        return self.parts(word.parts)

    def parts(self, parts: tuple[WordPart, ...]) -> str:
        if len(parts) == 1:
            return self.part(parts[0])
        return "".join([self.part(part) for part in parts])

    def part(self, part: WordPart) -> str:
        match part:
            case Literal(text) | BadSubstitution(text):
                return text
            case Escaped(text):
                return "\\" + text
            case SingleQuoted(text):
                return f"'{text}'"
            case AnsiQuoted(text):
                return single_quote(text)
            case DoubleQuoted(parts) | LocaleQuoted(parts):
                return f'"{self.parts(parts)}"'
            case Param():
                return self._param(part)
            case ParamNames(prefix, joined):
                return f"${{!{prefix}{'*' if joined else '@'}}}"
            case ParamKeys(name, joined):
                return f"${{!{name}[{'*' if joined else '@'}]}}"
            case CommandSub(body):
                return f"$({self._commands(body, part.source)})"
            case BackquoteSub(source):
                return f"`{source}`"
            case ProcSub(direction, body):
                return f"{direction}({self._commands(body, part.source)})"
            case ArithSub(arith, bracket):
                text = self.word(arith.source)
                return f"$[{text}]" if bracket else f"$(({text}))"
            case Tilde(user):
                return "~" + user

    def _commands(self, body: Command | None, source: str | None) -> str:
        if body is None or source is not None:
            return source or ""
        text = self._body(body)
        return " " + text if text.startswith("(") else text  # $(( would be arithmetic

    def index(self, index: Index | None) -> str:
        if index is None:
            return ""
        if isinstance(index, AllElements):
            return "[*]" if index.joined else "[@]"
        return f"[{self.word(index.word)}]"

    def _param(self, param: Param) -> str:
        if not param.braced:
            return "$" + param.name
        name = ("!" if param.indirect else "") + param.name + self.index(param.index)
        if isinstance(param.op, Length):
            return f"${{#{name}}}"
        return f"${{{name}{self._operator(param.op)}}}"

    def _operator(self, op: ParamOp | None) -> str:
        match op:
            case None | Length():
                return ""
            case Default(sign, colon, word):
                return (":" if colon else "") + sign + self.word(word)
            case Strip(sign, pattern):
                return sign + self.word(pattern)
            case Replace(mode, pattern, replacement):
                second = "" if replacement is None else "/" + self.word(replacement)
                return f"/{mode}{self.word(pattern)}{second}"
            case ChangeCase(sign, case_pattern):
                return sign + (self.word(case_pattern) if case_pattern else "")
            case Slice(offset, length):
                second = "" if length is None else ":" + self.word(length.source)
                return f":{self.word(offset.source)}{second}"
            case Transform(letter):
                return "@" + letter

    # --- assignments ---

    def assignment(self, assignment: Assignment) -> str:
        value = assignment.value
        text = self.array(value) if isinstance(value, ArrayLiteral) else self.word(value)
        return f"{assignment.name}{self.index(assignment.index)}{'+=' if assignment.append else '='}{text}"

    def array(self, array: ArrayLiteral) -> str:
        return f"({' '.join([self._element(element) for element in array.elements])})"

    def _element(self, element: ArrayElement) -> str:
        if element.index is None:
            return self.word(element.value)
        return f"{self.index(element.index)}{'+=' if element.append else '='}{self.word(element.value)}"

    def argument(self, argument: Word | Assignment) -> str:
        return self.assignment(argument) if isinstance(argument, Assignment) else self.word(argument)
