"""Quoting against a table recorded from bash 5.2."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from belljar.libc import quote

TABLE = [json.loads(line) for line in (Path(__file__).parent / "quotes.jsonl").read_text().splitlines()]
STYLES: dict[str, Callable[[str], str]] = {
    "printf": quote.for_printf,
    "reuse": quote.for_reuse,
    "declare": lambda w: f"declare -- w={quote.for_declare(w)}",
    "set": lambda w: f"w={quote.for_set(w)}",
    "trace": lambda w: f"++ : {quote.for_trace(w)}",
    "key": lambda w: f'declare -A m=([{quote.for_key(w + ".")}]="1" )',
    "single": lambda w: f"alias zz={quote.single(w)}",
    "assign": lambda w: f"w={quote.for_reuse(w)}",
}


@pytest.mark.parametrize("style", STYLES)
def test_quoting_is_that_of_bash(style: str) -> None:
    wrong = [(w, want[style], got) for w, want in TABLE if (got := STYLES[style](w)) != want[style]]
    assert wrong == []
