"""Compiles calls of awk's built-in functions."""

from __future__ import annotations

import math
from collections.abc import Callable

from belljar.bin.awk import nodes as n
from belljar.bin.awk import times
from belljar.bin.awk.errors import AwkFatal
from belljar.bin.awk.operators import Operators, type_name
from belljar.bin.awk.patterns import Pattern
from belljar.bin.awk.record import find_fields, split_blanks, split_pattern
from belljar.bin.awk.scope import NUM, STR, TEST, VAL, Compiled, Frame, StringCode
from belljar.bin.awk.substitute import substitute_all, substitute_first, substitute_general
from belljar.bin.awk.values import UNINIT, Array, RegexValue, Untyped, Value, string_number, strnum, to_number, whole

TOP = 1 << 53


class Builtins(Operators):
    """One method a function, `call_NAME`."""

    def format_code(self, arguments: list[n.Expr], line: int) -> StringCode:
        raise NotImplementedError

    def expr_builtin(self, node: n.Builtin, want: str) -> Compiled:
        method = getattr(self, "call_" + node.name)
        compiled: Compiled = method(node)
        return compiled

    # -- numbers ------------------------------------------------------------------------------------------------

    def call_atan2(self, node: n.Builtin) -> Compiled:
        y, x = self.num(node.arguments[0]), self.num(node.arguments[1])
        return NUM, lambda frame: math.atan2(y(frame), x(frame))

    def _math(self, node: n.Builtin, function: Callable[[float], float]) -> Compiled:
        operand = self.num(node.arguments[0])

        def compute(frame: Frame) -> float:
            try:
                return function(operand(frame))
            except ValueError:
                return math.copysign(math.nan, -1.0)

        return NUM, compute

    def call_sin(self, node: n.Builtin) -> Compiled:
        return self._math(node, math.sin)

    def call_cos(self, node: n.Builtin) -> Compiled:
        return self._math(node, math.cos)

    def call_exp(self, node: n.Builtin) -> Compiled:
        operand = self.num(node.arguments[0])
        warn, line, spell = self.runtime.warn, node.line, self.conversion.number

        def compute(frame: Frame) -> float:
            number = operand(frame)
            try:
                result = math.exp(number)
                if result == 0.0 and number - number == 0.0:
                    warn(f"exp: argument {spell(number)} is out of range", line)
                return result
            except OverflowError:
                warn(f"exp: argument {spell(number)} is out of range", line)
                return math.inf

        return NUM, compute

    def _checked(self, node: n.Builtin, function: Callable[[float], float], zero: float | None) -> Compiled:
        operand = self.num(node.arguments[0])
        warn, line, name, spell = self.runtime.warn, node.line, node.name, self.conversion.number

        def compute(frame: Frame) -> float:
            number = operand(frame)
            if number < 0:
                warn(f"{name}: received negative argument {spell(number)}", line)
                return math.copysign(math.nan, -1.0)
            if number == 0 and zero is not None:
                return zero
            return function(number)

        return NUM, compute

    def call_log(self, node: n.Builtin) -> Compiled:
        return self._checked(node, math.log, -math.inf)

    def call_sqrt(self, node: n.Builtin) -> Compiled:
        return self._checked(node, math.sqrt, None)

    def call_int(self, node: n.Builtin) -> Compiled:
        operand = self.num(node.arguments[0])

        def truncate(frame: Frame) -> float:
            number = operand(frame)
            return float(int(number)) if number - number == 0.0 else number

        return NUM, truncate

    def call_rand(self, node: n.Builtin) -> Compiled:
        runtime = self.runtime
        return NUM, lambda frame: runtime.random.random()

    def call_srand(self, node: n.Builtin) -> Compiled:
        runtime = self.runtime
        seed = self.num(node.arguments[0]) if node.arguments else None

        def reseed(frame: Frame) -> float:
            return runtime.reseed(math.floor(runtime.world.now()) if seed is None else seed(frame))

        return NUM, reseed

    def call_strtonum(self, node: n.Builtin) -> Compiled:
        operand = self.value(node.arguments[0])
        text = self.conversion.string

        def convert(frame: Frame) -> float:
            value = operand(frame)
            return value if type(value) is float else parse_c_number(text(value))

        return NUM, convert

    def _integers(self, node: n.Builtin, combine: Callable[[list[int]], int]) -> Compiled:
        operands = [self.num(argument) for argument in node.arguments]
        name, line, spell = node.name, node.line, self.conversion.number

        def compute(frame: Frame) -> float:
            values = [operand(frame) for operand in operands]
            for index, value in enumerate(values):
                if value < 0:
                    if len(values) == 2 and name in ("lshift", "rshift"):
                        shown = ", ".join(f"{value:f}" for value in values)
                        raise AwkFatal(f"{name}({shown}): negative values are not allowed", line)
                    which = f"argument {index + 1} " if name != "compl" else f"({value:f}): "
                    if name == "compl":
                        raise AwkFatal(f"compl({value:f}): negative value is not allowed", line)
                    raise AwkFatal(f"{name}: {which}negative value {spell(value)} is not allowed", line)
            integers = [int(value) & ((1 << 64) - 1) if value - value == 0.0 else 0 for value in values]
            return float(combine(integers))

        return NUM, compute

    def call_and(self, node: n.Builtin) -> Compiled:
        return self._integers(node, lambda values: _reduce(values, lambda a, b: a & b))

    def call_or(self, node: n.Builtin) -> Compiled:
        return self._integers(node, lambda values: _reduce(values, lambda a, b: a | b))

    def call_xor(self, node: n.Builtin) -> Compiled:
        return self._integers(node, lambda values: _reduce(values, lambda a, b: a ^ b))

    def call_compl(self, node: n.Builtin) -> Compiled:
        return self._integers(node, lambda values: ~values[0] & (TOP - 1))

    def call_lshift(self, node: n.Builtin) -> Compiled:
        return self._integers(node, lambda values: (values[0] << min(values[1], 64)) & ((1 << 64) - 1))

    def call_rshift(self, node: n.Builtin) -> Compiled:
        return self._integers(node, lambda values: values[0] >> min(values[1], 64))

    def call_mkbool(self, node: n.Builtin) -> Compiled:
        return TEST, self.test(node.arguments[0])

    # -- strings ------------------------------------------------------------------------------------------------

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

    # -- patterns -----------------------------------------------------------------------------------------------

    def _substitution(self, node: n.Builtin) -> Compiled:
        pattern = self.pattern(node.arguments[0], node.line)
        replacement = self.string(node.arguments[1])
        target: n.Expr = node.arguments[2] if len(node.arguments) > 2 else n.Field(n.Num(0.0), node.line)
        while isinstance(target, n.Group):
            target = target.inner
        work = substitute_all if node.name == "gsub" else substitute_first
        runtime = self.runtime

        def charge_size(size: int) -> None:
            if size > 1 << 16:
                runtime.large_string(size)

        text = self.string(target)
        if not isinstance(target, (n.Var, n.Index, n.Field)):
            return NUM, lambda frame: float(work(pattern(frame), replacement(frame), text(frame), charge_size)[1])
        if isinstance(target, n.Field) and isinstance(target.index, n.Num) and target.index.value == 0.0:
            record = self.record

            def substitute_record(frame: Frame) -> float:
                found = pattern(frame)
                new, count = work(found, replacement(frame), record.get_text(), charge_size)
                if count:
                    record.set_text(new)
                return float(count)

            return NUM, substitute_record
        locate, load, save = self.place(target)
        convert = self.conversion.string

        def substitute(frame: Frame) -> float:
            found = pattern(frame)
            with_text = replacement(frame)
            where = locate(frame)
            new, count = work(found, with_text, convert(load(frame, where)), charge_size)
            if count:
                save(frame, where, new)
            return float(count)

        return NUM, substitute

    call_sub = _substitution
    call_gsub = _substitution

    def call_gensub(self, node: n.Builtin) -> Compiled:
        pattern, replacement = self.pattern(node.arguments[0], node.line), self.string(node.arguments[1])
        how = self.value(node.arguments[2])
        target = self.string(node.arguments[3] if len(node.arguments) > 3 else n.Field(n.Num(0.0), node.line))
        runtime, text, line = self.runtime, self.conversion.string, node.line

        def substitute(frame: Frame) -> str:
            found, with_text, selector = pattern(frame), replacement(frame), how(frame)
            subject = target(frame)
            which = 0
            spelled = text(selector)
            if spelled[:1] not in ("g", "G"):
                number = to_number(selector)
                if number < 1 or number != number:
                    runtime.warn(f"gensub: third argument `{spelled}' treated as 1", line)
                which = max(whole(number), 1)
            return substitute_general(found, with_text, which, subject, runtime.charge_size)

        return STR, substitute

    def call_match(self, node: n.Builtin) -> Compiled:
        text, pattern = self.string(node.arguments[0]), self.pattern(node.arguments[1], node.line)
        groups = self.array(node.arguments[2]) if len(node.arguments) > 2 else None
        start_cell, length_cell = self.runtime.cell("RSTART"), self.runtime.cell("RLENGTH")
        separator = self.runtime.cell("SUBSEP")
        convert = self.conversion.string

        def match(frame: Frame) -> float:
            subject = text(frame)
            compiled = pattern(frame)
            found = compiled.search(subject)
            held: Array | None = None
            if groups is not None:
                held = groups(frame)
                held.clear()
            if found is None:
                start_cell[0], length_cell[0] = 0.0, -1.0
                return 0.0
            start, end = found.span()
            if held is not None:
                between = convert(separator[0])
                for number in range(compiled.regex.groups + 1):
                    first, last = found.span(number)
                    if first >= 0:
                        held[str(number)] = strnum(subject[first:last])
                        held[f"{number}{between}start"] = float(first + 1)
                        held[f"{number}{between}length"] = float(last - first)
            start_cell[0], length_cell[0] = float(start + 1), float(end - start)
            return float(start + 1)

        return NUM, match

    def call_split(self, node: n.Builtin) -> Compiled:
        arguments = node.arguments
        text, array = self.string(arguments[0]), self.array(arguments[1])
        separators = self.array(arguments[3]) if len(arguments) > 3 else None
        cutter = self._cutter(arguments[2] if len(arguments) > 2 else None, separators is not None)
        charge = self.runtime.charge

        def split(frame: Frame) -> float:
            subject = text(frame)
            cut = cutter(frame)
            held = array(frame)
            pieces, between = cut(subject)
            charge(len(pieces) >> 3)
            held.clear()
            fill(held, pieces)
            if separators is not None:
                kept = separators(frame)
                kept.clear()
                for number, piece in enumerate(between, 0 if len(between) > len(pieces) else 1):
                    if piece or number:
                        kept[str(number)] = piece
            return float(len(pieces))

        return NUM, split

    def _cutter(
        self, node: n.Expr | None, wants_separators: bool
    ) -> Callable[[Frame], Callable[[str], tuple[list[str], list[str]]]]:
        """Code giving the function that cuts a string for split()."""
        runtime = self.runtime
        while isinstance(node, n.Group):
            node = node.inner
        if isinstance(node, (n.Regex, n.TypedRegex)):
            pattern = self.pattern(node, node.line)
            source = node.source

            def by_constant(frame: Frame) -> Callable[[str], tuple[list[str], list[str]]]:
                compiled = pattern(frame)
                if source == "":
                    return lambda subject: (list(subject), [""] * max(len(subject) - 1, 0))
                if compiled.literal and not wants_separators:
                    literal = compiled.literal
                    return lambda subject: (subject.split(literal) if subject else [], [])
                return lambda subject: split_pattern(compiled, subject)

            return by_constant
        value: Callable[[Frame], Value]
        if node is None:
            cell = runtime.cell("FS")
            value = lambda frame: cell[0]  # noqa: E731
        else:
            value = self.value(node)
        convert = self.conversion.string

        def by_value(frame: Frame) -> Callable[[str], tuple[list[str], list[str]]]:
            given = value(frame)
            separator = convert(given)
            if node is None and runtime.splitting == "CSV":
                splitter = runtime.record.general
                return lambda subject: (splitter(subject), [])  # type: ignore[return-value]
            if separator == " " and type(given) is not RegexValue:
                return blanks_with_separators if wants_separators else (lambda subject: (split_blanks(subject), []))
            if separator == "":
                return lambda subject: (list(subject), [""] * max(len(subject) - 1, 0))
            if len(separator) == 1 and type(given) is not RegexValue and not runtime.ignore_case:
                return lambda subject: _split_literal(subject, separator, wants_separators)
            compiled = runtime.dynamic_pattern(separator)
            return lambda subject: split_pattern(compiled, subject)

        return by_value

    def call_patsplit(self, node: n.Builtin) -> Compiled:
        arguments = node.arguments
        text, array = self.string(arguments[0]), self.array(arguments[1])
        pattern: Callable[[Frame], Pattern]
        if len(arguments) > 2:
            pattern = self.pattern(arguments[2], node.line)
        else:
            runtime, cell, convert = self.runtime, self.runtime.cell("FPAT"), self.conversion.string
            pattern = lambda frame: runtime.dynamic_pattern(convert(cell[0]))  # noqa: E731
        separators = self.array(arguments[3]) if len(arguments) > 3 else None

        def patsplit(frame: Frame) -> float:
            subject = text(frame)
            pieces, between = find_fields(pattern(frame), subject)
            held = array(frame)
            held.clear()
            fill(held, pieces)
            if separators is not None:
                kept = separators(frame)
                kept.clear()
                for number, piece in enumerate(between):
                    kept[str(number)] = piece
            return float(len(pieces))

        return NUM, patsplit

    # -- arrays and types ---------------------------------------------------------------------------------------

    def _sorting(self, node: n.Builtin) -> Compiled:
        source = self.array(node.arguments[0])
        destination = self.array(node.arguments[1]) if len(node.arguments) > 1 else None
        how = self.string(node.arguments[2]) if len(node.arguments) > 2 else None
        by_index = node.name == "asorti"
        runtime, line = self.runtime, node.line

        def sort(frame: Frame) -> float:
            held = source(frame)
            rule = how(frame) if how is not None else ("@ind_str_asc" if by_index else "@val_type_asc")
            keys = runtime.sorted_keys(held, rule, line)
            values: list[Value] = list(keys) if by_index else [held[key] for key in keys]
            target = held if destination is None else destination(frame)
            target.clear()
            for number, value in enumerate(values, 1):
                target[str(number)] = value
            return float(len(values))

        return NUM, sort

    call_asort = _sorting
    call_asorti = _sorting

    def _raw(self, node: n.Expr) -> Callable[[Frame], Value]:
        """The value of an argument that may well be an array or untyped, without creating anything."""
        while isinstance(node, n.Group):
            node = node.inner
        if isinstance(node, n.Var):
            if node.name in self.locals:
                index = self.locals[node.name]
                return lambda frame: frame[index]
            if self.is_array(node.name) or node.name in self.tree.functions:
                array = self.runtime.array(node.name)
                return lambda frame: array
            if node.name in ("NR", "NF", "FNR"):
                return self.value(node)
            cell = self.runtime.cell(node.name)
            return lambda frame: cell[0]
        if isinstance(node, n.Index):
            container = self.array(node.array)
            key = self.subscript_key(node.subscripts)
            return lambda frame: container(frame).setdefault(key(frame), UNINIT)
        return self.value(node)

    def call_isarray(self, node: n.Builtin) -> Compiled:
        raw = self._raw(node.arguments[0])
        return TEST, lambda frame: type(raw(frame)) is dict

    def call_typeof(self, node: n.Builtin) -> Compiled:
        raw = self._raw(node.arguments[0])
        is_name = isinstance(node.arguments[0], (n.Var, n.Index))
        record = self.record
        beyond = self.num(node.arguments[0].index) if isinstance(node.arguments[0], n.Field) else None

        def name(frame: Frame) -> str:
            value = raw(frame)
            if beyond is not None and value == "" and beyond(frame) > record.get_nf():
                return "unassigned"
            if type(value) is dict:
                return "array"
            if value is UNINIT or type(value) is Untyped:
                return "untyped" if is_name else "unassigned"
            return type_name(value)

        return STR, name

    # -- input, output, time ------------------------------------------------------------------------------------

    def call_close(self, node: n.Builtin) -> Compiled:
        name = self.string(node.arguments[0])
        how = self.string(node.arguments[1]) if len(node.arguments) > 1 else None
        streams, line = self.runtime.streams, node.line

        def close(frame: Frame) -> float:
            which = name(frame)
            part = how(frame) if how is not None else ""
            if how is not None and part not in ("to", "from"):
                raise AwkFatal("close: second argument must be `to' or `from'", line)
            return streams.close(which, part, line)

        return NUM, close

    def call_fflush(self, node: n.Builtin) -> Compiled:
        streams = self.runtime.streams
        name = self.string(node.arguments[0]) if node.arguments else None

        warn, line = self.runtime.warn, node.line

        def flush(frame: Frame) -> float:
            which = "" if name is None else name(frame)
            result = streams.flush(which)
            if result < 0:
                warn(f"fflush: `{which}' is not an open file, pipe or co-process", line)
            return result

        return NUM, flush

    def call_system(self, node: n.Builtin) -> Compiled:
        command = self.string(node.arguments[0])
        streams, line = self.runtime.streams, node.line
        return NUM, lambda frame: streams.system(command(frame), line)

    def call_systime(self, node: n.Builtin) -> Compiled:
        world = self.runtime.world
        return NUM, lambda frame: float(math.floor(world.now()))

    def call_mktime(self, node: n.Builtin) -> Compiled:
        text = self.string(node.arguments[0])
        utc = self.test(node.arguments[1]) if len(node.arguments) > 1 else None
        world = self.runtime.world
        return NUM, lambda frame: times.mktime(text(frame), "UTC0" if utc and utc(frame) else world.timezone())

    def call_strftime(self, node: n.Builtin) -> Compiled:
        arguments = node.arguments
        runtime = self.runtime
        form = self.string(arguments[0]) if arguments else None
        stamp = self.num(arguments[1]) if len(arguments) > 1 else None
        utc = self.test(arguments[2]) if len(arguments) > 2 else None

        def render(frame: Frame) -> str:
            layout = form(frame) if form is not None else runtime.default_time_format()
            moment = math.floor(runtime.world.now()) if stamp is None else stamp(frame)
            zone = "UTC0" if utc and utc(frame) else runtime.world.timezone()
            text = times.strftime(layout, moment, zone)
            runtime.charge_size(len(text))
            return text

        return STR, render

    # -- messages in other languages: there is only one ----------------------------------------------------------

    def call_dcgettext(self, node: n.Builtin) -> Compiled:
        return VAL, self.value(node.arguments[0])

    def call_dcngettext(self, node: n.Builtin) -> Compiled:
        one, many, count = (self.value(node.arguments[0]), self.value(node.arguments[1]), self.num(node.arguments[2]))
        return VAL, lambda frame: one(frame) if count(frame) == 1 else many(frame)

    def call_bindtextdomain(self, node: n.Builtin) -> Compiled:
        text = self.string(node.arguments[0])
        return STR, text


def _reduce(values: list[int], combine: Callable[[int, int], int]) -> int:
    result = values[0]
    for value in values[1:]:
        result = combine(result, value)
    return result


def _offset(start: float) -> int:
    """Where substr() begins: fractions are cut off, and what lies before the string is taken for its start."""
    return int(min(start, 1e15)) - 1 if start >= 1.0 else 0


def fill(array: Array, pieces: list[str]) -> None:
    """array[1..n] = pieces, those that may look numeric as such."""
    for number, piece in enumerate(pieces, 1):
        array[str(number)] = strnum(piece)


def _split_literal(subject: str, separator: str, wants: bool) -> tuple[list[str], list[str]]:
    pieces = subject.split(separator) if subject else []
    return pieces, [separator] * (len(pieces) - 1) if wants else []


def blanks_with_separators(subject: str) -> tuple[list[str], list[str]]:
    """split() by blanks with the blanks kept: element 0 is what leads, element n what trails."""
    pieces = split_blanks(subject)
    between: list[str] = []
    at = 0
    for piece in pieces:
        start = subject.index(piece, at)
        between.append(subject[at:start])
        at = start + len(piece)
    return pieces, [*between, subject[at:]]


def parse_c_number(text: str) -> float:
    """strtonum: decimal, 0x hexadecimal or 0 octal."""
    stripped = text.lstrip(" \t\n\r\f\v")
    sign = -1.0 if stripped[:1] == "-" else 1.0
    body = stripped[1:] if stripped[:1] in ("+", "-") else stripped
    if body[:2] in ("0x", "0X"):
        digits = _leading(body[2:], "0123456789abcdefABCDEF")
        return sign * float(int(digits or "0", 16)) if len(digits) < 256 else sign * math.inf
    if body[:1] == "0" and body[1:2].isdigit():
        digits = _leading(body, "0123456789")
        if not set(digits) & {"8", "9"} and body[len(digits) : len(digits) + 1] not in (".", "e", "E"):
            return sign * float(int(digits, 8)) if len(digits) < 340 else sign * math.inf
    return string_number(text)


def _leading(text: str, allowed: str) -> str:
    return text[: len(text) - len(text.lstrip(allowed))]


def lower(text: str) -> str:
    """Character by character, as towlower does: never changing the length."""
    if text.isascii():
        return text.lower()
    return "".join([small if len(small := char.lower()) == 1 else char for char in text])


def upper(text: str) -> str:
    if text.isascii():
        return text.upper()
    return "".join([big if len(big := char.upper()) == 1 else char for char in text])
