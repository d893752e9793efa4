"""What the fast paths of the compiler must not change, and what no recorded case can show."""

from __future__ import annotations

import pytest

from belljar.bin.awk.session import Session
from tests.bin.awk.library import MemoryWorld, awk

COLUMNS = b"x 1\ny 2.5\nz abc\nw\nv 1_0\nu 0x10\nt nan\ns +inf\n"


@pytest.mark.parametrize(
    ("quick", "general"),
    [
        ("{ s += $2 } END { print s }", "{ v = $2; s = s + v } END { print s }"),
        ("{ c[$1]++ } END { print length(c) }", '{ k = $1 ""; c[k] = c[k] + 1 } END { print length(c) }'),
        (
            "{ for (i = 1; i <= NF; i++) c[$i]++ } END { for (k in c) print k, c[k] }",
            "{ i = 1; while (i <= NF) { k = $i; c[k] += 1; i++ } } END { for (k in c) print k, c[k] }",
        ),
        (
            "{ for (i = 1; i <= NF; i++) print i, $i; print i }",
            "{ i = 1; while (!(i > NF)) { print i, $(i + 0); i++ } print i }",
        ),
        ("$2 > 1 { print }", "{ v = $2; w = 1; if (v > w) print }"),
        ("{ print $1, $2 }", "{ a = $1; b = $2; print a, b }"),
        ("{ print $2, $1, $9 }", '{ print $(1 + 1) OFS $(0 + 1) OFS "" }'),
        ('{ printf "%s:%5d|%.2f\\n", $1, $2, $2 }', '{ f = "%s:%5d|%.2f\\n"; printf f, $1, $2, $2 }'),
        ('{ $2 = ""; print }', '{ n = 2; $n = ""; print }'),
        ("END { print NR }", "{ n++ } END { print n }"),
    ],
)
def test_a_fast_path_gives_what_the_general_one_gives(quick: str, general: str) -> None:
    assert awk(quick, stdin=COLUMNS) == awk(general, stdin=COLUMNS)


def test_the_loop_over_fields_sees_assigned_values() -> None:
    program = '{ $2 = 3.0; $3 = "3.0"; for (i = 1; i <= NF; i++) c[$i]++; for (k in c) n++; print n, c[3] }'
    assert awk(program, stdin=b"a b c\n") == ("3 1\n", "", 0)


def test_a_loop_that_changes_its_record_is_not_walked() -> None:
    assert awk("{ for (i = 1; i <= NF; i++) if (i < 3) $(NF + 1) = i; print NF }", stdin=b"a b\n")[0] == "4\n"
    assert awk("{ for (i = 1; i <= NF; i++) { print $i; i++ } }", stdin=b"a b c\n")[0] == "a\nc\n"
    assert awk('{ for (i = 1; i <= NF; i++) { if ($i == "b") break; } print i }', stdin=b"a b c\n")[0] == "2\n"


def test_records_cross_chunks() -> None:
    line = b"word " * 20_000
    data = b"\n".join([line, b"x", line, b"y"])
    assert awk("{ print NF }", stdin=data)[0] == "20000\n1\n20000\n1\n"
    assert awk("-v", "RS=x+", "{ n++ } END { print n }", stdin=b"axxb" * 100_000)[0] == "100001\n"
    assert awk("-v", "RS=", "{ n++ } END { print n }", stdin=b"a\nb\n\n\n" * 100_000)[0] == "100000\n"


def test_characters_cross_chunks() -> None:
    data = ("é" * 400_001 + "\n").encode()
    assert awk("{ print length($0) }", stdin=data)[0] == "400001\n"


def test_rs_may_change_between_records() -> None:
    program = 'NR == 1 { RS = ";" } { print NR ":" $0 }'
    assert awk(program, stdin=b"a\nb;c\nd;e")[0] == "1:a\n2:b\n3:c\nd\n4:e\n"


def test_getline_and_the_main_loop_share_the_input() -> None:
    assert awk("NR == 1 { getline x } { print x $0 }", stdin=b"1\n2\n3\n")[0] == "21\n23\n"


def test_a_program_is_compiled_for_every_run() -> None:
    assert awk("BEGIN { print ++n }") == awk("BEGIN { print ++n }")


def test_streams_are_flushed_before_a_failure() -> None:
    out, err, status = awk("{ print $1; x = 0; print 1 / x }", stdin=b"a\n")
    assert (out, status) == ("a\n", 2)
    assert err == "awk: cmd. line:1: (FILENAME=- FNR=1) fatal: division by zero attempted\n"


def test_in_place_editing_writes_the_replacement() -> None:
    world = MemoryWorld(files={"f": b"a\nb\n"})
    assert Session(world, "awk").run(["-i", "inplace", "{ print toupper($0) }", "f"]) == 0
    assert world.made["f"].written == b"A\nB\n"
    assert world.sinks[1].written == b""


def test_included_sources() -> None:
    files = {
        "lib.awk": b"function twice(x) { return 2 * x }\n",
        "main.awk": b'@include "lib.awk"\nBEGIN { print twice(4) }\n',
    }
    assert awk("-f", "main.awk", files=files) == ("8\n", "", 0)


def test_time_zones_without_zone_files() -> None:
    world = MemoryWorld()
    world.environment = {"TZ": "EST5EDT,M3.2.0,M11.1.0"}
    program = """BEGIN {
        f = "%H:%M %Z %z"
        print strftime(f, 1700000000), strftime(f, 1720000000)
        print mktime("2024 07 03 05 46 40")
    }"""
    Session(world, "awk").run([program])
    assert world.sinks[1].written == b"17:13 EST -0500 05:46 EDT -0400\n1720000000\n"
