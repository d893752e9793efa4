"""Differences between the POSIX and GNU dialects of regular expressions."""

from __future__ import annotations

from msgspec import Struct


class Dialect(Struct, frozen=True):
    """Named after the bits of GNU's `reg_syntax_t` they stand for."""

    extended: bool = False  # ( ) { } | are operators without a backslash
    plus_query: bool = False  # + and ? are operators without a backslash
    braces: bool = True  # intervals exist
    context_indep_ops: bool = False  # an operator with nothing to repeat is skipped ...
    context_invalid_ops: bool = False  # ... or is an error
    context_invalid_dup: bool = False  # so are \{ at the start and a second * or \{
    invalid_interval_ord: bool = False  # "a{1" is literal text
    unmatched_paren_ord: bool = False  # a ) that closes nothing is literal
    newline_alt: bool = False  # a newline separates alternatives
    colon_check: bool = False  # "[:space:]" is taken for a mistake
    warnings: bool = False  # GNU grep's "* at start of expression"
    repeatable_anchors: bool = False  # ^* and $* are optional anchors
    bracket_escapes: bool = False  # awk: a backslash in brackets quotes
    c_escapes: bool = False  # awk: \n \t \ddd \xhh ...
    perl_edges: bool = True  # \b is a word edge (awk says \y)


DIALECTS: dict[str, Dialect] = {
    "bre": Dialect(),
    "sed": Dialect(context_invalid_dup=True, colon_check=True),
    "grep": Dialect(newline_alt=True, colon_check=True, warnings=True),
    "ere": Dialect(
        extended=True,
        plus_query=True,
        context_indep_ops=True,
        context_invalid_ops=True,
        unmatched_paren_ord=True,
    ),
    "sed-ere": Dialect(
        extended=True,
        plus_query=True,
        context_indep_ops=True,
        context_invalid_ops=True,
        colon_check=True,
    ),
    "egrep": Dialect(
        extended=True,
        plus_query=True,
        context_indep_ops=True,
        invalid_interval_ord=True,
        unmatched_paren_ord=True,
        newline_alt=True,
        colon_check=True,
        warnings=True,
        repeatable_anchors=True,
    ),
    "awk": Dialect(
        extended=True,
        plus_query=True,
        invalid_interval_ord=True,
        unmatched_paren_ord=True,
        bracket_escapes=True,
        c_escapes=True,
        perl_edges=False,
    ),
    "emacs": Dialect(plus_query=True, braces=False),
}
