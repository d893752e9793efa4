"""Scripts made by chance never crash the interpreter nor exceed the budget, whatever they do."""

import sys

from hypothesis import given
from hypothesis import strategies as st

from belljar.abi.limits import Limits
from belljar.kernel.machine import virtual_machine
from tests.adapter import new_session
from tests.shell.script_texts import scripts

# What a session needs anyway; changing it inside an example would upset hypothesis.
sys.setrecursionlimit(100_000)
LIMITS = Limits(steps=20_000, wall_seconds=20, processes=32, expansion_bytes=1 << 20, output_bytes=1 << 20)


@given(scripts())
def test_random_scripts_end_in_a_status_or_a_limit(script: str) -> None:
    session = new_session(machine=virtual_machine(), limits=LIMITS)
    result = session.exec(["bash", "-c", script.replace("\0", "")], stdin=b"1\nx\n")
    assert 0 <= result.status <= 255
    assert b"internal error" not in result.stderr


@given(st.text(max_size=60).map(lambda text: text.encode("utf-8", "ignore").decode().replace("\0", "")))
def test_random_text_is_no_danger(text: str) -> None:
    session = new_session(machine=virtual_machine(), limits=LIMITS)
    result = session.exec(["bash", "-c", text])
    assert 0 <= result.status <= 255
    assert b"internal error" not in result.stderr


@given(st.lists(st.binary(max_size=20).map(lambda data: data.replace(b"\0", b"")), min_size=1, max_size=3))
def test_quoted_bytes_come_back_through_eval(values: list[bytes]) -> None:
    words = [value.decode("utf-8", "surrogateescape") for value in values]
    session = new_session(machine=virtual_machine(), limits=LIMITS)
    script = """eval "set -- x $(printf '%q ' "$@")"; shift
    for a; do eval "b=${a@Q}"; [ "$a" = "$b" ] || echo BAD; done
    printf '%s\\0' "$@\""""
    result = session.exec(["bash", "-c", script, "bash", *words])
    assert b"BAD" not in result.stdout
    assert result.stdout.endswith(b"".join(value + b"\0" for value in values))
