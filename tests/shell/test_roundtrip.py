"""What the shell quotes, it reads back: any text through `printf %q`, `${x@Q}`, `declare -p` and `read`."""

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belljar.abi.paths import fsdecode
from tests.adapter import new_session, put, run_command

# Any bytes but NUL, which no shell variable can hold.
values = st.binary(max_size=40).map(lambda data: fsdecode(data.replace(b"\0", b"")))

SCRIPT = r"""
x=$1
eval "a=$(printf '%q.' "$x")"; [[ $a == "$x." ]] || echo "printf %q: $x"
eval "b=${x@Q}"; [[ $b == "$x" ]] || echo "@Q: $x"
d=$(declare -p x); eval "${d/declare -- x=/y=}"
[[ $y == "$x" ]] || echo "declare -p: $x"
declare -A m=(["$x."]=$x); e=$(declare -p m); unset m; eval "$e"; [[ ${m["$x."]} == "$x" ]] || echo "assoc: $x"
n=(1 "$x"); e=$(declare -p n); unset n; eval "$e"; [[ ${n[1]} == "$x" ]] || echo "array: $x"
IFS= read -r -d '' r < <(printf '%s\0' "$x"); [[ $r == "$x" ]] || echo "read: $x"
mapfile -d '' q < <(printf '%s\0' "$x" b); [[ ${q[0]} == "$x" ]] || echo "mapfile: $x"
case $x in "$x") ;; *) echo "case: $x" ;; esac
trap -- ": $x" USR1; t=$(trap -p USR1)
eval "set -- ${t% SIGUSR1}"; [[ $3 == ": $x" ]] || echo "trap: $x"
alias "z=$x"; eval "w=(${BASH_ALIASES[z]@Q})"; [[ ${w[0]} == "$x" ]] || echo "alias: $x"
"""


@pytest.fixture(autouse=True, scope="module")
def deep_stack() -> None:
    """What a session sets anyway; hypothesis objects if it changes under its hands."""
    sys.setrecursionlimit(100_000)


@settings(max_examples=60)
@given(values)
def test_any_text_survives_quoting(value: str) -> None:
    session = new_session()
    put(session, "/tmp/w", ("dir",))
    result = run_command(session, ["bash", "-c", SCRIPT, "bash", value], cwd="/tmp/w")
    assert (result.stdout, result.stderr, result.status) == (b"", b"", 0)
