"""jq's language, filter by filter: what each gives, and what it says when it can't."""

from __future__ import annotations

from typing import Any

import pytest

from belljar.bin.jq.code import CompileProblem
from belljar.bin.jq.errors import JqError
from belljar.bin.jq.lexer import SyntaxProblem
from belljar.bin.jq.writer import to_json
from tests.bin.jq.library import Counter, outputs, run

TREE = {"a": [1, {"b": None}], "c": "x"}
CASES: list[tuple[str, Any, list[Any]]] = [
    # precedence and associativity
    ("1 + 2 * 3 - 4 / 2", None, [5]),
    ("10 - 3 - 2", None, [5]),
    ("1, 2 | . * 10", None, [10, 20]),
    ("null // false // 3", None, [3]),
    ("true or error | not", None, [False]),
    ("1 + 2 as $x | $x * $x", None, [9]),
    ("-(1, 2)", None, [-1, -2]),
    ("[.[] | -. + 1]", [1, 2], [[0, -1]]),
    ("def f: 1; def g: f + 1; def f: 10; g + f", None, [12]),
    ("2 as $x | [1, 2, 3] | .[$x - 1:]", None, [[2, 3]]),
    ("try error(1) catch . + 1", None, [2]),
    # generators: which operand is the outer loop
    ("[(1, 2) + (10, 20)]", None, [[11, 12, 21, 22]]),
    ("[[1, 2][0, 1] as $a | ($a, 9)]", None, [[1, 9, 2, 9]]),
    ('[{"k": (1, 2), "l": (3, 4)} | [.k, .l]]', None, [[[1, 3], [1, 4], [2, 3], [2, 4]]]),
    ('["\\(1, 2)-\\(3, 4)"]', None, [["1-3", "2-3", "1-4", "2-4"]]),
    ("[range(0, 1; 2, 3)]", None, [[0, 1, 0, 1, 2, 1, 1, 2]]),
    ("[limit(2, 1; 7, 8, 9)]", None, [[7, 8, 7]]),
    # paths
    ("[paths]", TREE, [[["a"], ["a", 0], ["a", 1], ["a", 1, "b"], ["c"]]]),
    ("[path(..)]", [[1]], [[[], [0], [0, 0]]]),
    ("path(first(.a[], .c))", TREE, [["a", 0]]),
    ("path(getpath(['a', 1]) | .b)".replace("'", '"'), TREE, [["a", 1, "b"]]),
    ("[path(.a[1:] | .[0])]", TREE, [[["a", {"start": 1, "end": None}, 0]]]),
    ("path(if .c then .a else .c end)", TREE, [["a"]]),
    ("path(.x // .c)", TREE, [["c"]]),
    ("path(reduce ('a', 1) as $k (.; .[$k]))".replace("'", '"'), TREE, [["a", 1]]),
    ('[path(.a | recurse(.[]?; type != "null"))]', TREE, [[["a"], ["a", 0], ["a", 1]]]),
    ("def second: .[1]; path(.a | second)", TREE, [["a", 1]]),
    # updates
    (".a[0] |= . + 1 | .a[0]", TREE, [2]),
    ("(.a[] | numbers) = 9 | .a", TREE, [[9, {"b": None}]]),
    (".[] |= empty", [1, 2, 3], [[]]),
    ("(.[] | select(. > 1)) |= empty", [1, 2, 3], [[1]]),
    (".a += (1, 2) | .a", {"a": 1}, [2, 3]),
    (".[1:] = [9]", [1, 2, 3], [[1, 9]]),
    (".[2:4] |= map(. * 10)", [1, 2, 3, 4, 5], [[1, 2, 30, 40, 5]]),
    ("(.a, .a) |= . + 1", {"a": 0}, [{"a": 2}]),
    (".. |= (numbers |= . + 1)", [1, [2]], [[2, [3]]]),
    (".a as $x | .b = $x | .b.c = 1", {"a": {"c": 0}}, [{"a": {"c": 0}, "b": {"c": 1}}]),
    ("del(.[1], .[0])", [1, 2, 3], [[3]]),
    ("del(.a, .b.c)", {"a": 1, "b": {"c": 2, "d": 3}}, [{"b": {"d": 3}}]),
    ("to_entries | map(.value) | add", {"a": 1, "b": 2}, [3]),
    ("with_entries(.value += 1)", {"a": 1}, [{"a": 2}]),
    # folds change their state in place only where nobody can see it
    ("reduce range(3) as $i ([]; . + [$i])", None, [[0, 1, 2]]),
    ("[foreach range(3) as $i ([]; . + [$i])]", None, [[[0], [0, 1], [0, 1, 2]]]),
    ("reduce range(3) as $i ({}; .k += [$i]) | .k", None, [[0, 1, 2]]),
    ("reduce range(2) as $i ({a: []}; .a += [$i] | .b = .a) ", None, [{"a": [0, 1], "b": [0, 1]}]),
    ("[1] as $s | [reduce (2, 3) as $i ($s; . + [$i]), $s]", None, [[[1, 2, 3], [1]]]),
    ("{a: [1]} as $s | reduce 2 as $i ($s; .a += [$i]) | [., $s]", None, [[{"a": [1, 2]}, {"a": [1]}]]),
    ("reduce range(3) as $i (0; if $i == 1 then . else . + $i end)", None, [2]),
    ("reduce empty as $i (7; 8)", None, [7]),
    ("reduce (1, 2) as $i (0; empty)", None, [None]),
    ("[foreach (1, 2) as $i (0; (. + $i, . * 10))]", None, [[1, 0, 2, 0]]),
    # functions
    ("def f(g): [g, g]; f(1, 2)", None, [[1, 2, 1, 2]]),
    ("def f($a; $b): $a + $b; [f(1, 2; 10, 20)]", None, [[11, 21, 12, 22]]),
    ("def f($x): [$x, x]; [f(1, 2)]", None, [[[1, 1, 2], [2, 1, 2]]]),
    ("def f(x): x | x; 3 | f(. * .)", None, [81]),
    ("def g: 3; def f(g): def h: g; h; f(4)", None, [4]),
    ("def f: def g: 5; g; f", None, [5]),
    ("def r(n): if n > 0 then n, r(n - 1) else empty end; [r(3)]", None, [[3, 2, 1]]),
    ("[recurse(if . < 3 then . + 1 else empty end)]", 0, [[0, 1, 2, 3]]),
    ("[.[] | until(. > 100; . * .)]", [2, 3], [[256, 6561]]),
    ("[while(. < 20; . * 2)]", 3, [[3, 6, 12]]),
    ("first(inputs)", None, []),
    # destructuring
    (". as [$a, {b: $c}] | [$a, $c]", [1, {"b": 2}], [[1, 2]]),
    (". as {$a, b: [$x, $y]} | [$a, $x, $y]", {"a": 1, "b": [2]}, [[1, 2, None]]),
    (". as {a: $x} ?// [$x] | $x", [5], [5]),
    ('. as [$x] ?// $x | if $x | type == "number" then error else $x end', [1], [[1]]),
    ('. as {("a", "b"): $x} | $x', {"a": 1, "b": 2}, [1, 2]),
    # labels and errors
    ("[label $f | 1, break $f, 2]", None, [[1]]),
    ("[range(3) | label $f | (., if . == 1 then break $f else 9 end)]", None, [[0, 9, 1, 2, 9]]),
    ('[.[] | try (if . == 2 then error("two") else . end) catch .]', [1, 2, 3], [[1, "two", 3]]),
    ('[(1, error("x"), 3)?]', None, [[1]]),
    ('try (try error("a") catch error("b")) catch .', None, ["b"]),
    ("[.[]?]", 3, [[]]),
    ("error(null)?", None, []),
    ("[.[] | (.a.b)?]", [1, {"a": {"b": 2}}, {"a": 3}], [[2]]),
    ("[.[].b?]", [1, {"b": 2}], [[2]]),
    ("[.[][0, 1]?]", [[1], 2], [[1, None]]),
    # kinds, order, equality
    ("sort", [[], {}, "a", 1, True, None, False], [[None, False, True, 1, "a", [], {}]]),
    ("[.[] == 1]", [1, 1.0, True, "1"], [[True, True, False, False]]),
    ("[nan == nan, nan < nan, (nan | tojson)]", None, [[False, True, "null"]]),
    ("unique, group_by(. % 2), (map(-.) | max)", [3, 1, 2, 1], [[1, 2, 3], [[2], [3, 1, 1]], -1]),
    ("[min_by(.a).i, max_by(.a).i]", [{"a": 1, "i": 0}, {"a": 1, "i": 1}], [[0, 1]]),
    ('{"a": {"b": 1, "c": 2}} * {"a": {"b": 9}}', None, [{"a": {"b": 9, "c": 2}}]),
    ("[1, 2, 2, 3] - [2]", None, [[1, 3]]),
    ('"ab" * 3, "a-b" / "-"', None, ["ababab", ["a", "b"]]),
    ('contains({a: ["fo"]})', {"a": ["foo", "bar"], "b": 1}, [True]),
    # strings and formats
    ('"é" | length, utf8bytelength, @uri', None, [1, 2, "%C3%A9"]),
    ('[1, "a\\"b", null, true] | @csv, @tsv', None, ['1,"a""b",,true', '1\ta"b\t\ttrue']),
    ('@sh "x \\("a b")"', None, ["x 'a b'"]),
    ('"aGk=" | @base64d', None, ["hi"]),
    ('"x" | @base32, (@base32 | @base32d)', None, ["PA======", "x"]),
    ('[splits(", *")]', "a, b,c", [["a", "b", "c"]]),
    ('[match("(?<l>[a-z])(?<d>\\\\d)?"; "g") | .captures | map(.string)]', "a1b", [[["a", "1"], ["b", None]]]),
    ('gsub("(?<x>[aeiou])"; "<\\(.x)>")', "hello", ["h<e>ll<o>"]),
    ('[gsub("a"; "x", "y")]', "aba", [["xbx", "yby"]]),
    ('[scan("\\\\w+")]', "two words", [["two", "words"]]),
    ('test("^a.c$"; "x"), test("A"; "i")', "abc", [True, True]),
    # dates
    (
        'todate, (gmtime | mktime), strftime("%a %e %b %Y %j %U")',
        1_709_210_096,
        ["2024-02-29T12:34:56Z", 1709210096, "Thu 29 Feb 2024 060 08"],
    ),
    ('strptime("%d %B %Y") | mktime | todate', "29 february 2024", ["2024-02-29T00:00:00Z"]),
    ("localtime | .[3], ([2024, 0, 1, 0, 0, 0] | mktime)", 0, [19, 1704067200]),
    ('strflocaltime("%H:%M %Z %z")', 0, ["19:00 EST -0500"]),
    ("[2024, 13, 35, 25, 61, 61] | mktime | todate", None, ["2025-03-08T02:02:01Z"]),
    # the rest
    ("$__loc__.line, env.HOME, $ENV.HOME, now", None, [1, "/home/user", "/home/user", 1_700_000_000.5]),
    ("[tostream] | fromstream(.[])", TREE, [TREE]),
    ("[1 | truncate_stream([[0], 1], [[1, 0], 2], [[1, 0]], [[1]])]", None, [[[[0], 2], [[0]]]]),
    ('walk(if type == "number" then . + 1 else . end)', [1, {"a": 2}], [[2, {"a": 3}]]),
    ("pick(.a[1], .c)", TREE, [{"a": [None, {"b": None}], "c": "x"}]),
    ("[skip(1; 1, 2, 3)], nth(1; 5, 6), isempty(empty)", None, [[2, 3], 6, True]),
    ('getpath(["x", "y"]), has("a"), (.a | has(5))', TREE, [None, True, False]),
    ('[splits("")]', "ab", [["", "a", "b", ""]]),
    (
        'ltrimstr("a"), rtrimstr("c"), trimstr("a"), ascii_upcase, explode',
        "abc",
        ["bc", "ab", "bc", "ABC", [97, 98, 99]],
    ),
    ("tojson, (tojson | fromjson)", {"a": [1, "x"]}, ['{"a":[1,"x"]}', {"a": [1, "x"]}]),
    ("[combinations]", [[1, 2], [3]], [[[1, 3], [2, 3]]]),
    ("transpose, flatten, (flatten(1) | length)", [[1, [2]], [3]], [[[1, 3], [[2], None]], [1, 2, 3], 3]),
    ("bsearch(2), bsearch(5), index(3)", [1, 2, 3], [1, -4, 2]),
    ("INDEX(.id) | keys", [{"id": 2}, {"id": 1}], [["1", "2"]]),
    ('{if: 1, "b c": 2, @base64 "k": 3}', None, [{"if": 1, "b c": 2, "k": 3}]),
]


@pytest.mark.parametrize(("source", "value", "expected"), CASES, ids=[case[0] for case in CASES])
def test_filter(source: str, value: Any, expected: list[Any]) -> None:
    assert [to_json(output) for output in run(source, value)] == [to_json(output) for output in expected]


ERRORS: list[tuple[str, Any, Any]] = [
    (".a", 1, 'Cannot index number with "a"'),
    (".[0]", {}, "Cannot index object with number"),
    (".[]", None, "Cannot iterate over null (null)"),
    ('1 + "a"', None, 'number (1) and string ("a") cannot be added'),
    ("{} - 1", None, "object ({}) and number (1) cannot be subtracted"),
    ("1 / 0", None, "number (1) and number (0) cannot be divided because the divisor is zero"),
    ("1 % 0", None, "number (1) and number (0) cannot be divided (remainder) because the divisor is zero"),
    ("keys", "a long string that will be cut", 'string ("a long string that will ...") has no keys'),
    ("tonumber", "1x", 'string ("1x") cannot be parsed as a number'),
    ("{(.): 2}", 1, "Cannot use number (1) as object key"),
    ("implode", 1, "implode input must be an array"),
    ("path(1 + 1)", None, "Invalid path expression with result 2"),
    ("path([1] | .[0])", None, "Invalid path expression near attempt to access element 0 of [1]"),
    ("fromjson", "[1,", "Unfinished JSON term at EOF at line 1, column 3 (while parsing '[1,')"),
    ("limit(-1; 1)", None, "limit doesn't support negative count"),
    (".[-1] = 1", [], "Out of bounds negative array index"),
    ('strptime("%Y")', "x", 'date "x" does not match format "%Y"'),
    ('test("(")', "x", "Regex failure: missing ), unterminated subpattern at position 0"),
    ("error({a: 1})", None, {"a": 1}),
    (".a.b?", 1, 'Cannot index number with "a"'),
    (".[error]?", "x", "x"),
    ("error // 1", "x", "x"),
    ("def f: 1 + f; f", None, "Function calls nested too deeply"),
]


@pytest.mark.parametrize(("source", "value", "expected"), ERRORS, ids=[case[0] for case in ERRORS])
def test_error(source: str, value: Any, expected: Any) -> None:
    with pytest.raises(JqError) as caught:
        run(source, value)
    assert caught.value.value == expected


@pytest.mark.parametrize(
    "source",
    [
        "",
        "1 +",
        "{a:",
        "[1",
        ")",
        ".a.",
        "if 1 then 2",
        "try",
        "1 as x | 2",
        "reduce . as $x (1)",
        '"\\q"',
        '"abc',
        "1 == 2 == 3",
        ".a[1:2",
        "{1: 2}",
        "def f: 1",
        "@",
        "..a",
        "%",
        "$",
        "break",
        "label x | 1",
    ],
)
def test_malformed_program(source: str) -> None:
    if source == "":
        assert run(source, 5) == [5]
        return
    with pytest.raises(SyntaxProblem):
        run(source)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("foo", "foo/0 is not defined"),
        ("map(1; 2)", "map/2 is not defined"),
        ("$x", "$x is not defined"),
        (". as [$a] | $b", "$b is not defined"),
        ("break $x", "$*label-x is not defined"),
        ("@nope", "nope is not a valid format"),
    ],
)
def test_undefined(source: str, message: str) -> None:
    with pytest.raises(CompileProblem) as caught:
        run(source)
    assert caught.value.message == message


def test_inputs_come_one_by_one() -> None:
    runtime = Counter([1, 2, 3])
    assert list(outputs("[., input], [inputs]", 0, runtime)) == [[0, 1], [2, 3]]


def test_debug_hands_its_input_through() -> None:
    runtime = Counter()
    assert list(outputs('1 | debug | debug("m\\(.)") | stderr', None, runtime)) == [1]
    assert runtime.messages == [1, "m1", 1]


def test_outputs_are_lazy() -> None:
    runtime = Counter(steps=1000)
    found = outputs("repeat(1), error", None, runtime)
    assert [next(found) for _ in range(3)] == [1, 1, 1]


@pytest.mark.parametrize(
    "source",
    [
        "def f: if . >= 50000 then . else . + 1 | f end; f",
        "last(range(. ; 50001))",
        "last(recurse(if . < 50000 then . + 1 else empty end))",
        "until(. >= 50000; . + 1)",
        "[limit(50001; repeat(1))] | length - 1",
        "reduce range(50000) as $i (.; . + 1)",
    ],
)
def test_long_loops_need_no_stack(source: str) -> None:
    assert run(source, 0) == [50000]
