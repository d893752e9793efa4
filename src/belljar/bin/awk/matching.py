"""Compiles the calls of awk's functions that take a pattern: sub, match, split and their kin."""

from __future__ import annotations

from collections.abc import Callable

from belljar.bin.awk import nodes as n
from belljar.bin.awk.lvalues import array_code, place_code
from belljar.bin.awk.operators import pattern_code
from belljar.bin.awk.patterns import Pattern
from belljar.bin.awk.record import find_fields, split_blanks, split_pattern
from belljar.bin.awk.scope import NUM, STR, BuiltinCompiler, Compiled, Frame, Scope
from belljar.bin.awk.substitute import substitute_all, substitute_first, substitute_general
from belljar.bin.awk.values import Array, RegexValue, Value, strnum, to_number, whole


def _substitution(scope: Scope, node: n.Builtin) -> Compiled:
    pattern = pattern_code(scope, node.arguments[0], node.line)
    replacement = scope.string(node.arguments[1])
    target: n.Expr = node.arguments[2] if len(node.arguments) > 2 else n.Field(n.Num(0.0), node.line)
    target = n.ungroup(target)
    work = substitute_all if node.name == "gsub" else substitute_first
    runtime = scope.runtime

    def charge_size(size: int) -> None:
        if size > 1 << 16:
            runtime.large_string(size)

    text = scope.string(target)
    if not isinstance(target, (n.Var, n.Index, n.Field)):
        return NUM, lambda frame: float(work(pattern(frame), replacement(frame), text(frame), charge_size)[1])
    if n.constant_field(target) == 0:
        record = scope.record

        def substitute_record(frame: Frame) -> float:
            found = pattern(frame)
            new, count = work(found, replacement(frame), record.get_text(), charge_size)
            if count:
                record.set_text(new)
            return float(count)

        return NUM, substitute_record
    locate, load, save = place_code(scope, target)
    convert = scope.conversion.string

    def substitute(frame: Frame) -> float:
        found = pattern(frame)
        with_text = replacement(frame)
        where = locate(frame)
        new, count = work(found, with_text, convert(load(frame, where)), charge_size)
        if count:
            save(frame, where, new)
        return float(count)

    return NUM, substitute


def _call_gensub(scope: Scope, node: n.Builtin) -> Compiled:
    pattern, replacement = pattern_code(scope, node.arguments[0], node.line), scope.string(node.arguments[1])
    how = scope.value(node.arguments[2])
    target = scope.string(node.arguments[3] if len(node.arguments) > 3 else n.Field(n.Num(0.0), node.line))
    runtime, text, line = scope.runtime, scope.conversion.string, node.line

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


def _call_match(scope: Scope, node: n.Builtin) -> Compiled:
    text, pattern = scope.string(node.arguments[0]), pattern_code(scope, node.arguments[1], node.line)
    groups = array_code(scope, node.arguments[2]) if len(node.arguments) > 2 else None
    start_cell, length_cell = scope.runtime.cell("RSTART"), scope.runtime.cell("RLENGTH")
    separator = scope.runtime.cell("SUBSEP")
    convert = scope.conversion.string

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


def _call_split(scope: Scope, node: n.Builtin) -> Compiled:
    arguments = node.arguments
    text, array = scope.string(arguments[0]), array_code(scope, arguments[1])
    separators = array_code(scope, arguments[3]) if len(arguments) > 3 else None
    cutter = _cutter(scope, arguments[2] if len(arguments) > 2 else None, separators is not None)
    charge = scope.runtime.charge

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
    scope: Scope, node: n.Expr | None, wants_separators: bool
) -> Callable[[Frame], Callable[[str], tuple[list[str], list[str]]]]:
    """Code giving the function that cuts a string for split()."""
    runtime = scope.runtime
    node = None if node is None else n.ungroup(node)
    if isinstance(node, (n.Regex, n.TypedRegex)):
        pattern = pattern_code(scope, node, node.line)
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
        value = scope.value(node)
    convert = scope.conversion.string

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


def _call_patsplit(scope: Scope, node: n.Builtin) -> Compiled:
    arguments = node.arguments
    text, array = scope.string(arguments[0]), array_code(scope, arguments[1])
    pattern: Callable[[Frame], Pattern]
    if len(arguments) > 2:
        pattern = pattern_code(scope, arguments[2], node.line)
    else:
        runtime, cell, convert = scope.runtime, scope.runtime.cell("FPAT"), scope.conversion.string
        pattern = lambda frame: runtime.dynamic_pattern(convert(cell[0]))  # noqa: E731
    separators = array_code(scope, arguments[3]) if len(arguments) > 3 else None

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


FUNCTIONS: dict[str, BuiltinCompiler] = {
    "gensub": _call_gensub,
    "gsub": _substitution,
    "match": _call_match,
    "patsplit": _call_patsplit,
    "split": _call_split,
    "sub": _substitution,
}
