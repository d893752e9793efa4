"""awk programs that never end, or want everything, are ended by their budget."""

from __future__ import annotations

import pytest

from belljar.abi.limits import MIB, Limits
from tests.adapter import new_session

LIMITS = Limits(steps=300_000, expansion_bytes=4 * MIB, wall_seconds=200)

HOSTILE = {
    "an endless loop": "BEGIN { while (1) ; }",
    "an endless do": "BEGIN { do x++; while (1) }",
    "an endless for": "BEGIN { for (;;) x++ }",
    "recursion that branches": "function f(n) { return n ? f(n - 1) + f(n - 1) : 1 } BEGIN { f(60) }",
    "a doubling string": 'BEGIN { x = "a"; while (1) x = x x }',
    "a string joined from many": 'BEGIN { x = sprintf("%1000000d", 1); y = x x x x x x x x x x x x; print length(y) }',
    "a wide conversion": 'BEGIN { printf "%999999999d", 1 }',
    "many wide conversions": 'BEGIN { printf "%4000000d%4000000d%4000000d", 1, 1, 1 }',
    "a growing substitution": 'BEGIN { x = "aaaa"; while (1) gsub(/a/, "aaaaaaaa", x) }',
    "a growing replacement": 'BEGIN { x = "aa"; while (1) x = gensub(/(a+)/, "\\\\1\\\\1\\\\1", "g", x) }',
    "a far field": "BEGIN { $40000000 = 1 }",
    "a large NF": "BEGIN { NF = 40000000 }",
    "a file without end": "{ n++ } END { print n }",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_it_is_stopped(name: str) -> None:
    session = new_session(limits=LIMITS)
    operands = ["/dev/zero"] if "file" in name else []
    result = session.exec(["awk", HOSTILE[name], *operands])
    assert result.limit in ("steps", "expansion_bytes")
    assert session.exec(["awk", "BEGIN { print 1 }"]).stdout == b"1\n"


def test_a_pattern_that_backtracks_elsewhere_is_quick() -> None:
    program = 'BEGIN { s = sprintf("%40s", ""); gsub(/ /, "a", s); print (s "b") ~ /^(a+)+$/, (s "b") ~ /^(a|aa)+$/ }'
    assert new_session(limits=LIMITS).exec(["awk", program]).stdout == b"0 0\n"


def test_deep_recursion_is_a_mistake_not_a_crash() -> None:
    result = new_session().exec(["awk", "function f(n) { return f(n + 1) } BEGIN { f(0) }"])
    assert result.status == 2
    assert b"nested too deeply" in result.stderr


def test_output_is_bounded() -> None:
    limits = Limits(output_bytes=1 * MIB, wall_seconds=200)
    result = new_session(limits=limits).exec(["awk", 'BEGIN { while (1) print "flood" }'])
    assert result.limit == "output_bytes"
