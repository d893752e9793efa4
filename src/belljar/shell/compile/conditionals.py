"""`[[ ]]` compiled to closures that give a bool, and `[` where its arguments are plain enough."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import eq, ge, gt, le, lt, ne
from typing import TYPE_CHECKING, TypeAlias

from belljar.abi.paths import fsencode
from belljar.libc.pattern import compile_pattern
from belljar.shell.arrays import Array, Assoc
from belljar.shell.compile.arith import compile_arith
from belljar.shell.compile.arith_shape import has_effects
from belljar.shell.compile.arith_source import compile_arith_source
from belljar.shell.compile.arith_values import evaluate
from belljar.shell.compile.fields import is_multi, is_repeatable
from belljar.shell.compile.words import (
    Text,
    compile_pattern_text,
    compile_scalar,
    constant,
    constant_pattern,
    mark_quoted,
)
from belljar.shell.control import ArithError, BadElementError, ShellError, SubscriptError
from belljar.shell.expand.operators import matches
from belljar.shell.filetest import FILE_COMPARISONS, FILE_OPERATORS, compare_files, test_file
from belljar.shell.nodes import (
    ArithSub,
    CondAnd,
    CondBinary,
    CondGroup,
    CondNode,
    CondNot,
    CondOr,
    CondUnary,
    DoubleQuoted,
    LocaleQuoted,
    Param,
    Tilde,
    Word,
)
from belljar.shell.regexes import match_regex, quote_regex
from belljar.shell.variables import NAMEREF, is_name

if TYPE_CHECKING:
    from belljar.shell.shell import Shell

Test: TypeAlias = "Callable[[Shell], bool]"

COMPARE: dict[str, Callable[[int, int], bool]] = {"-eq": eq, "-ne": ne, "-lt": lt, "-le": le, "-gt": gt, "-ge": ge}


def compile_conditional(node: CondNode) -> Test:
    match node:
        case CondGroup(operand):
            return compile_conditional(operand)
        case CondNot(operand):
            negated = compile_conditional(operand)
            return lambda shell: not negated(shell)
        case CondAnd(operands):
            every = [compile_conditional(operand) for operand in operands]
            if len(every) == 2:
                first, second = every
                return lambda shell: first(shell) and second(shell)

            def conjunction(shell: Shell) -> bool:
                for operand in every:  # noqa: SIM110 - a generator costs more than the tests
                    if not operand(shell):
                        return False
                return True

            return conjunction
        case CondOr(operands):
            some = [compile_conditional(operand) for operand in operands]

            def disjunction(shell: Shell) -> bool:
                for operand in some:  # noqa: SIM110
                    if operand(shell):
                        return True
                return False

            return disjunction
        case CondUnary(op, word):
            return _compile_unary(op, word)
        case CondBinary(op, left, right):
            return _compile_binary(op, left, right)


def _compile_unary(op: str, word: Word) -> Test:
    text = compile_arith_source(word.parts) if op == "-v" else compile_scalar(word)
    match op:
        case "-n":
            return lambda shell: bool(text(shell))
        case "-z":
            return lambda shell: not text(shell)
        case _:
            test = unary_test(op)
            return lambda shell: test(shell, text(shell))


def unary_test(op: str) -> Callable[[Shell, str], bool]:
    """Compile a unary operator to a test of its expanded operand."""
    match op:
        case "-n":
            return lambda _shell, value: bool(value)
        case "-z":
            return lambda _shell, value: not value
        case "-v":
            return is_set
        case "-R":
            return lambda shell, value: bool(shell.vars.own_attrs(value) & NAMEREF)
        case "-o":
            return lambda shell, value: shell.options.get(value, False)
        case "-t":
            return _is_terminal
        case _ if op in FILE_OPERATORS:
            return lambda shell, value: test_file(shell.process, op, value)
        case _:
            raise AssertionError(op)


def _is_terminal(shell: Shell, text: str) -> bool:
    return text.isdecimal() and len(text) < 7 and shell.process.isatty(int(text))


def is_set(shell: Shell, target: str) -> bool:
    """`-v target`: whether a variable, an element or (for [@]) any element of an indexed array has a value."""
    if target.isdecimal():
        return int(target) <= len(shell.args) if len(target) < 9 else False
    element = shell.split_element(target)
    if element is None:
        return is_name(target) and shell.vars.get(target) is not None
    name, subscript = element
    contents = shell.vars.contents(name)
    if contents is None:
        return False
    if subscript in ("@", "*"):
        if isinstance(contents, Assoc):
            return contents.get(subscript) is not None
        return not isinstance(contents, Array) or len(contents) > 0
    try:
        return shell.vars.get_element(name, shell.subscript_text(name, subscript)) is not None
    except BadElementError:
        shell.error(f"{name}: bad array subscript")
    except ShellError as error:
        if isinstance(error, ArithError | SubscriptError):
            raise
        shell.error(str(error))
    return False


def compile_operand(word: Word) -> Callable[[Shell], int]:
    """An operand of -eq and its kin in `[[`: an expression."""
    fixed = constant(word)
    if (
        fixed is not None
        and fixed.isdecimal()
        and fixed.isascii()
        and (fixed[0] != "0" or fixed == "0")
        and len(fixed) < 19
    ):
        number = int(fixed)
        return lambda _shell: number
    text = compile_scalar(word)
    name = _plain_name(word)

    def operand(shell: Shell) -> int:
        value: object = shell.table.get(name)
        if type(value) is int:
            return value
        return evaluate(shell, text(shell))

    return operand


def _plain_name(word: Word) -> str:
    """The variable, if the word is just `$name` or `"$name"`."""
    parts: Sequence[object] = word.parts
    if len(parts) == 1 and isinstance(parts[0], DoubleQuoted | LocaleQuoted):
        parts = parts[0].parts
    if len(parts) == 1 and isinstance(parts[0], Param):
        part = parts[0]
        if part.op is None and part.index is None and not part.indirect and part.name.isidentifier():
            return part.name
    return ""


def _compile_binary(op: str, left: Word, right: Word) -> Test:
    if op in COMPARE:
        compare = COMPARE[op]
        one, two = compile_operand(left), compile_operand(right)
        return lambda shell: compare(one(shell), two(shell))
    first = compile_scalar(left)
    if op in ("=", "==", "!="):
        return _compile_match(first, right, negated=op == "!=")
    if op == "=~":
        pattern = compile_regex(right)
        return lambda shell: match_regex(shell, first(shell), pattern(shell))
    second = compile_scalar(right)
    if op == "<":
        return lambda shell: fsencode(first(shell)) < fsencode(second(shell))
    if op == ">":
        return lambda shell: fsencode(first(shell)) > fsencode(second(shell))
    if op in FILE_COMPARISONS:
        return lambda shell: compare_files(shell.process, first(shell), op, second(shell))
    raise AssertionError(op)


def _compile_match(value: Text, word: Word, *, negated: bool) -> Test:
    fixed = constant_pattern(word)
    if fixed is not None:
        simple = compile_pattern(fixed)
        if simple.literal is not None or not fixed:
            literal = simple.literal or ""

            def equals(shell: Shell) -> bool:
                if shell.nocasematch:
                    return matches(shell, value(shell), fixed) != negated
                return (value(shell) == literal) != negated

            return equals
        return lambda shell: matches(shell, value(shell), fixed) != negated
    if len(word.parts) == 1 and isinstance(word.parts[0], DoubleQuoted | LocaleQuoted):
        other = compile_scalar(word)

        def same(shell: Shell) -> bool:
            if shell.nocasematch:
                return (value(shell).casefold() == other(shell).casefold()) != negated
            return (value(shell) == other(shell)) != negated

        return same
    pattern = compile_pattern_text(word)

    return lambda shell: matches(shell, value(shell), pattern(shell)) != negated


def compile_regex(word: Word) -> Text:
    """The ERE on the right of =~: quoted parts match literally."""
    return mark_quoted(word.parts, quote_regex, (DoubleQuoted, LocaleQuoted, Tilde))


# --- [ --------------------------------------------------------------------------------------------------------------


class Fallback(Exception):
    """An argument turned out to need the builtin itself."""


def compile_test_command(words: Sequence[Word]) -> Test | None:
    """The arguments of `test` (without `]`) where their number can't change: None if it is too unusual.

    The closure raises Fallback when an unquoted value is empty or would be split, or an integer isn't one.
    """
    if len(words) == 2:
        op = constant(words[0])
        if op is None or op not in ("-n", "-z", "-e", "-f", "-d", "-s", "-r", "-w", "-x", "-L", "-h"):
            return None
        operator = op
        value = _argument(words[1])
        if value is None:
            return None
        if op == "-n":
            return lambda shell: bool(value(shell))
        if op == "-z":
            return lambda shell: not value(shell)
        return lambda shell: test_file(shell.process, operator, value(shell))
    if len(words) != 3:
        return None
    op = constant(words[1])
    if op in COMPARE:
        left, right = _integer_argument(words[0]), _integer_argument(words[2])
        if left is None or right is None:
            return None
        compare = COMPARE[op]
        return lambda shell: compare(left(shell), right(shell))
    first, second = _argument(words[0]), _argument(words[2])
    if first is None or second is None:
        return None
    if op in ("=", "=="):
        return lambda shell: first(shell) == second(shell)
    if op == "!=":
        return lambda shell: first(shell) != second(shell)
    return None


def _argument(word: Word) -> Text | None:
    """A word that is one field, or whose closure raises Fallback if it isn't."""
    from belljar.shell.compile.fields import has_one_field

    if not all(is_repeatable(part) for part in word.parts):
        return None
    if has_one_field(word):
        return compile_scalar(word)
    if len(word.parts) != 1 or not isinstance(word.parts[0], Param | ArithSub) or is_multi(word.parts[0]):
        return None
    text = compile_scalar(word)

    def single(shell: Shell) -> str:
        value = text(shell)
        if not value or shell.ifs.touches(value):
            raise Fallback
        return value

    return single


def _integer_argument(word: Word) -> Callable[[Shell], int] | None:
    if len(word.parts) == 1 and isinstance(word.parts[0], ArithSub):
        arith = word.parts[0].arith
        if arith.expr is None or has_effects(arith.expr):
            return None
        number = compile_arith(arith)

        def value(shell: Shell) -> int:
            if not shell.plain_ifs:
                raise Fallback
            return number(shell)

        return value
    fixed = constant(word)
    if fixed is not None:
        if not (fixed.isdecimal() and fixed.isascii()) or len(fixed) > 18:
            return None
        fixed_number = int(fixed)
        return lambda _shell: fixed_number
    text = _argument(word)
    if text is None:
        return None
    argument = text
    name = _plain_name(word)

    def integer(shell: Shell) -> int:
        value: object = shell.table.get(name)
        if type(value) is int and shell.plain_ifs:
            return value
        found = argument(shell)
        if found.isascii() and (found.isdecimal() or (found[:1] == "-" and found[1:].isdecimal())) and len(found) < 19:
            return int(found)
        raise Fallback

    return integer
