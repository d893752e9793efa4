"""Compiles the calls of awk's functions of plain strings."""

from __future__ import annotations

from belljar.bin.awk import nodes as n
from belljar.bin.awk.numeric import Numeric
from belljar.bin.awk.scope import NUM, STR, Compiled, Frame, StringCode
from belljar.bin.awk.values import UNINIT


class Strings(Numeric):
    """length, index, substr, the cases, sprintf."""

    def format_code(self, arguments: list[n.Expr], line: int) -> StringCode:
        raise NotImplementedError

    def call_length(self, node: n.Builtin) -> Compiled:
        if not node.arguments:
            record = self.record
            return NUM, lambda frame: float(len(record.get_text()))
        argument = node.arguments[0]
        while isinstance(argument, n.Group):
            argument = argument.inner
        if isinstance(argument, n.Var):
            if self.is_array(argument.name):
                array = self.array(argument)
                return NUM, lambda frame: float(len(array(frame)))
            if argument.name in self.locals:
                index = self.locals[argument.name]
                convert = self.conversion.string

                def measure(frame: Frame) -> float:
                    value = frame[index]
                    return float(len(value)) if type(value) in (str, dict) else float(len(convert(value)))  # type: ignore[arg-type]

                return NUM, measure
        if isinstance(argument, n.Index):
            return self._element_length(argument)
        text = self.string(argument)
        return NUM, lambda frame: float(len(text(frame)))

    def _element_length(self, node: n.Index) -> Compiled:
        array = self.array(node.array)
        key = self.subscript_key(node.subscripts)
        convert = self.conversion.string

        def measure(frame: Frame) -> float:
            value = array(frame).setdefault(key(frame), UNINIT)
            return float(len(value)) if type(value) is dict else float(len(convert(value)))

        return NUM, measure

    def call_index(self, node: n.Builtin) -> Compiled:
        text, part = self.string(node.arguments[0]), self.string(node.arguments[1])
        if self.runtime.cases_matter:
            runtime = self.runtime

            def find(frame: Frame) -> float:
                subject, wanted = text(frame), part(frame)
                if runtime.ignore_case:
                    subject, wanted = lower(subject), lower(wanted)
                return float(subject.find(wanted) + 1)

            return NUM, find
        return NUM, lambda frame: float(text(frame).find(part(frame)) + 1)

    def call_substr(self, node: n.Builtin) -> Compiled:
        text, start = self.string(node.arguments[0]), self.num(node.arguments[1])
        if len(node.arguments) == 2:

            def rest(frame: Frame) -> str:
                subject = text(frame)
                return subject[_offset(start(frame)) :]

            return STR, rest
        length = self.num(node.arguments[2])

        def cut(frame: Frame) -> str:
            subject = text(frame)
            begin = _offset(start(frame))
            size = length(frame)
            return subject[begin : begin + int(min(size, 1e15))] if size >= 1.0 else ""

        return STR, cut

    def call_tolower(self, node: n.Builtin) -> Compiled:
        text = self.string(node.arguments[0])
        return STR, lambda frame: lower(text(frame))

    def call_toupper(self, node: n.Builtin) -> Compiled:
        text = self.string(node.arguments[0])
        return STR, lambda frame: upper(text(frame))

    def call_sprintf(self, node: n.Builtin) -> Compiled:
        return STR, self.format_code(node.arguments, node.line)


def _offset(start: float) -> int:
    """Where substr() begins: fractions are cut off, and what lies before the string is taken for its start."""
    return int(min(start, 1e15)) - 1 if start >= 1.0 else 0


def lower(text: str) -> str:
    """Character by character, as towlower does: never changing the length."""
    if text.isascii():
        return text.lower()
    return "".join([small if len(small := char.lower()) == 1 else char for char in text])


def upper(text: str) -> str:
    if text.isascii():
        return text.upper()
    return "".join([big if len(big := char.upper()) == 1 else char for char in text])
