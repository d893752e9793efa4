"""Small languages meet random texts: an answer or an error, never an exception of ours, which would end the sandbox."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belljar.abi.limits import Limits
from tests.adapter import new_session

LIMITS = Limits(wall_seconds=20, cpu_seconds=10, steps=200_000, output_bytes=1 << 20)

ARGUMENT = {
    "date": ["date", "-d"],
    "printf": ["printf", "--"],
    "bash printf": ["bash", "-c", 'printf -- "$1" a 2 %', "bash"],
    "tr": ["tr", "-s", "a-z"],
    "numfmt": ["numfmt", "--to=iec"],
    "find -printf": ["find", "/etc", "-maxdepth", "0", "-printf"],
    "stat -c": ["stat", "-c"],
    "chmod": ["chmod"],
    "env -S": ["env", "-S"],
}
STDIN = {
    "bc": ["bc", "-l"],
    "dc": ["dc"],
    "make": ["make", "-n", "-f", "-"],
    "xargs": ["xargs", "echo"],
    "patch": ["patch"],
}

LANGUAGES = {
    "date": "0123456789:-/+ ,.@TZutcnexlasodywkmhr",
    "printf": "%0123456789.*-+ #dioxXeEfgGcsbqaA\\nxu'\"(T)",
    "bc": "0123456789.+-*/%^=<>!;{}()[]\nifwhelopructn ",
    "make": "abc$()%:=+?|;\t\n #.,@<^*\\\"'",
}


@pytest.fixture(autouse=True)
def _recursion_limit() -> None:
    """A session raises the limit once; hypothesis wants that done before it starts."""
    new_session()


def texts(name: str) -> st.SearchStrategy[str]:
    letters = next((alphabet for key, alphabet in LANGUAGES.items() if key in name), None)
    anything = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=30)
    return anything if letters is None else st.one_of(anything, st.text(letters, max_size=40))


def run(argv: list[str], stdin: str = "") -> None:
    result = new_session(limits=LIMITS).exec(argv, stdin=stdin.encode(), cwd="/tmp")
    assert b"Traceback" not in result.stdout + result.stderr
    assert b"internal error" not in result.stderr


@pytest.mark.parametrize("name", ARGUMENT)
def test_as_an_argument(name: str) -> None:
    @settings(max_examples=80)
    @given(texts(name))
    def check(text: str) -> None:
        run([*ARGUMENT[name], text, *(["/etc"] if name in ("stat -c", "chmod") else [])])

    check()


@pytest.mark.parametrize("name", STDIN)
def test_on_standard_input(name: str) -> None:
    @settings(max_examples=60)
    @given(texts(name))
    def check(text: str) -> None:
        run(STDIN[name], text)

    check()
