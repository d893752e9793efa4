"""A time limit costs the command, never the sandbox, whatever the command is busy with."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from belljar import Sandbox
from tests.escape.test_guest import ON_TIME

BUSY = {
    "grep -P": "grep -P '(?=(x+))(x+x+)+\\1y' x",
    "sed with back-references": "sed -E 's/(x*)*(x*)*\\1\\2z//' x",
    "sort -R": "for i in 1 2 3 4 5 6; do sort -R n n n; done > /dev/null",
    "sort -V": "for i in 1 2 3 4 5 6; do sort -V n n n; done > /dev/null",
    "sort -h": "for i in 1 2 3 4 5 6; do sort -h n n n; done > /dev/null",
    "awk match": "awk 'BEGIN { s = \"aaaaaaaaaaaaaaaaaaaaaaaab\"; while (1) match(s, /(a|aa)+$/) }'",
    "jq explode": "for i in 1 2 3 4; do jq -R 'explode | map(. + 1) | implode | explode | sort | unique' a; done",
    "printf %q": 'x=$(cat a); while :; do printf -v y %q "$x"; done',
    "keys of a large array": 'declare -A m; for i in {1..50000}; do m[k$i]=1; done; while :; do y="${!m[*]}"; done',
    "bc": "echo '2^2^24' | bc | wc -c",
    "factor": "factor 170141183460469231731687303715884105727170141183460469231731687303715884105728",
    "diff": "diff <(sort -R n) <(sort -R n) | wc -l; diff <(sort -R n) <(sort -R n) | wc -l",
    "xz": "head -c 90000000 /dev/urandom | xz -9 | wc -c",
    "sha512sum": "sha512sum < /dev/zero",
    "bash's regular expressions": "x=$(head -c 2000 a)b; while :; do [[ $x =~ ^(a|aa)+$ ]]; done",
    "python": "python3 -c 'while True: pass'",
    "node": "node -e 'while (true);'",
}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as box:
        box.exec("seq 400000 > n; head -c 3000000 /dev/zero | tr '\\0' a > a; printf 'x%.0s' {1..60} > x", timeout=60)
        yield box


@pytest.mark.battery(sample=4)
@pytest.mark.slow
@pytest.mark.parametrize("command", BUSY.values(), ids=BUSY.keys())
def test_busy(sandbox: Sandbox, command: str) -> None:
    began = time.monotonic()
    result = sandbox.exec(command, timeout=0.7)
    assert time.monotonic() - began < 0.7 + ON_TIME
    assert (result.exit_code, result.limit, result.timed_out) == (124, "wall_seconds", True)
    assert sandbox.exec("echo ok").stdout == "ok\n"
