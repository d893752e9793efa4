"""What the parser makes of each form of bash's syntax."""

from __future__ import annotations

import pytest

from belljar.shell import nodes as n
from belljar.shell.parse import ParseOptions, Parser, ShellSyntaxError, parse_script


def parse(text: str, **options: bool) -> n.Command:
    [command] = parse_script(text, ParseOptions(**options))  # type: ignore[arg-type]
    return command


def simple(text: str, **options: bool) -> n.SimpleCommand:
    command = parse(text, **options)
    assert isinstance(command, n.SimpleCommand)
    return command


def word(text: str, **options: bool) -> n.Word:
    argument = simple(f"echo {text}", **options).words[1]
    assert isinstance(argument, n.Word)
    return argument


def part(text: str) -> n.WordPart:
    [only] = word(text).parts
    return only


def lit(text: str) -> n.Word:
    return n.Word((n.Literal(text),) if text else ())


PARTS = [
    ("a", n.Literal("a")),
    ("'a b'", n.SingleQuoted("a b")),
    (r"\*", n.Escaped("*")),
    (r"$'a\tb\x41\u00e9\101'", n.AnsiQuoted("a\tbAéA")),
    (r"$'\xc3\xa9\xff'", n.AnsiQuoted("é\udcff")),
    (r"$'a\0b'", n.AnsiQuoted("a")),
    ('""', n.DoubleQuoted(())),
    (r'"a\$\x$b"', n.DoubleQuoted((n.Literal("a"), n.Escaped("$"), n.Literal("\\x"), n.Param("b")))),
    ('$"a"', n.LocaleQuoted((n.Literal("a"),))),
    ("~", n.Tilde("")),
    ("~+", n.Tilde("+")),
    ("$", n.Literal("$")),
    ("$x", n.Param("x")),
    ("$?", n.Param("?")),
    ("${x}", n.Param("x", braced=True)),
    ("${10}", n.Param("10", braced=True)),
    ("${#x}", n.Param("x", op=n.Length(), braced=True)),
    ("${#}", n.Param("#", braced=True)),
    ("${##}", n.Param("#", op=n.Length(), braced=True)),
    ("${#:-x}", n.Param("#", op=n.Default("-", True, lit("x")), braced=True)),
    ("${##x}", n.Param("#", op=n.Strip("#", lit("x")), braced=True)),
    ("${#a[@]}", n.Param("a", n.AllElements(False), op=n.Length(), braced=True)),
    ("${!x}", n.Param("x", indirect=True, braced=True)),
    ("${!}", n.Param("!", braced=True)),
    ("${!#}", n.Param("#", indirect=True, braced=True)),
    ("${!x*}", n.ParamNames("x", True)),
    ("${!x@}", n.ParamNames("x", False)),
    ("${!a[@]}", n.ParamKeys("a", False)),
    ("${!a[*]}", n.ParamKeys("a", True)),
    ("${!x@Q}", n.Param("x", indirect=True, op=n.Transform("Q"), braced=True)),
    ("${x:?}", n.Param("x", op=n.Default("?", True, lit("")), braced=True)),
    ("${x%%.*}", n.Param("x", op=n.Strip("%%", lit(".*")), braced=True)),
    ("${x/a/b}", n.Param("x", op=n.Replace("", lit("a"), lit("b")), braced=True)),
    ("${x//a}", n.Param("x", op=n.Replace("/", lit("a"), None), braced=True)),
    ("${x/#/b/c}", n.Param("x", op=n.Replace("#", lit(""), lit("b/c")), braced=True)),
    ("${x^^}", n.Param("x", op=n.ChangeCase("^^", None), braced=True)),
    ("${x,[a-z]}", n.Param("x", op=n.ChangeCase(",", lit("[a-z]")), braced=True)),
    ("${x@U}", n.Param("x", op=n.Transform("U"), braced=True)),
    ("${x!y}", n.BadSubstitution("${x!y}")),
    ("${}", n.BadSubstitution("${}")),
    (r"`a \`b\` \$x`", n.BackquoteSub(r"a \`b\` \$x", "a `b` $x")),
    ("$()", n.CommandSub(None)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), PARTS, ids=[text for text, _ in PARTS])
def test_a_word_part(text: str, expected: n.WordPart) -> None:
    assert part(text) == expected


def test_quotes_in_the_word_of_an_expansion_follow_their_surroundings() -> None:
    bare = part("${x:-'a'\"b\"}")
    assert isinstance(bare, n.Param)
    assert bare.op == n.Default("-", True, n.Word((n.SingleQuoted("a"), n.DoubleQuoted((n.Literal("b"),)))))
    quoted = part("\"${x:-'}'\\}}\"")
    assert isinstance(quoted, n.DoubleQuoted)
    [inner] = quoted.parts
    assert inner == n.Param("x", op=n.Default("-", True, n.Word((n.Literal("'}'"), n.Escaped("}")))), braced=True)
    pattern = part("\"${x#'*'}\"")
    assert isinstance(pattern, n.DoubleQuoted)
    assert pattern.parts == (n.Param("x", op=n.Strip("#", n.Word((n.SingleQuoted("*"),))), braced=True),)


def test_tildes_are_where_bash_expands_them() -> None:
    assert word("~me/x").parts == (n.Tilde("me"), n.Literal("/x"))
    assert word("a~").parts == (n.Literal("a~"),)
    assert word("~'a'").parts == (n.Literal("~"), n.SingleQuoted("a"))
    assert word("k=~:b:~x/c").parts == (n.Literal("k="), n.Tilde(""), n.Literal(":b:"), n.Tilde("x"), n.Literal("/c"))
    assert word("k=~", posix=True).parts == (n.Literal("k=~"),)
    assert word("--k=~").parts == (n.Literal("--k=~"),)


def test_braces() -> None:
    sequence = word("a{b,{1..3..2}}$x").braces
    assert sequence == n.BraceSequence(
        (
            n.Literal("a"),
            n.BraceList((n.BraceSequence((n.Literal("b"),)), n.BraceSequence((n.BraceRange(1, 3, 2),)))),
            n.Param("x"),
        )
    )
    assert word("{01..10}").braces == n.BraceSequence((n.BraceRange(1, 10, 0, 2),))
    assert word("{a..c}").braces == n.BraceSequence((n.BraceRange(97, 99, 0, letters=True),))
    for text in ("{a}", "{}", "{1..a}", "{a,b", r"\{a,b}", "{1...3}", '"{a,b}"', "{a\\,b}"):
        assert word(text).braces is None, text


def test_braces_are_expanded_before_a_bare_name_ends() -> None:
    braces = word("$x{a,b}").braces
    assert braces is not None
    assert braces.items == (n.BraceList((n.BraceSequence((n.Param("xa"),)), n.BraceSequence((n.Param("xb"),)))),)


def test_assignments() -> None:
    command = simple("a=1 b[i]+=x c=(1 [2]=y) cmd d=2 declare")
    assert [assignment.name for assignment in command.assignments] == ["a", "b", "c"]
    b, c = command.assignments[1:]
    assert b.append
    assert isinstance(b.index, n.Subscript)
    assert b.index.arith.expr == n.ArithVariable("i")
    assert isinstance(c.value, n.ArrayLiteral)
    assert c.value.elements[0] == n.ArrayElement(None, False, lit("1"))
    assert c.value.elements[1].value == lit("y")
    assert all(isinstance(argument, n.Word) for argument in command.words)
    declared = simple("command declare -a x=$y z").words
    assert declared[3] == n.Assignment("x", None, False, n.Word((n.Param("y"),)))


REDIRECTS = [
    ("> f", n.FileRedirect(">", 1, lit("f"))),
    ("2>>f", n.FileRedirect(">>", 2, lit("f"))),
    ("<f", n.FileRedirect("<", 0, lit("f"))),
    ("<>f", n.FileRedirect("<>", 0, lit("f"))),
    (">&2", n.FileRedirect(">&", 1, lit("2"))),
    ("3<&4-", n.FileRedirect("<&", 3, lit("4-"))),
    ("<&-", n.FileRedirect(">&", 0, lit("-"))),
    ("&>>f", n.FileRedirect("&>>", 1, lit("f"))),
    ("<<<f", n.FileRedirect("<<<", 0, lit("f"))),
    ("{v}>f", n.FileRedirect(">", n.FdVariable("v"), lit("f"))),
]


@pytest.mark.parametrize(("text", "expected"), REDIRECTS, ids=[text for text, _ in REDIRECTS])
def test_a_redirection(text: str, expected: n.Redirect) -> None:
    assert simple(f"a {text} b").redirects == (expected,)
    assert simple(f"{text} a").redirects == (expected,)
    group = parse(f"{{ a; }} {text}")
    assert isinstance(group, n.Group)
    assert group.redirects == (expected,)


def test_a_number_is_a_descriptor_only_right_before_the_operator() -> None:
    assert len(simple("a 2 >f").words) == 2
    assert len(simple("a 2>f").words) == 1
    assert len(simple("a x2>f").words) == 2


def heredocs(text: str) -> list[n.HereDoc]:
    return [doc for doc in simple(text).redirects if isinstance(doc, n.HereDoc)]


def test_here_documents() -> None:
    first, second = heredocs("cat <<A 3<<-'B'\n$x \\$ a\\\nb\nA\n\t$y\n\t\tB\n")
    assert first.text == "$x \\$ ab\n"
    assert first.body.parts == (n.Param("x"), n.Literal(" "), n.Escaped("$"), n.Literal(" ab\n"))
    assert (second.fd, second.quoted, second.text) == (3, True, "$y\n")
    [odd] = heredocs("cat <<\"a b\"'$c'\\d\nx\na b$cd\n")
    assert (odd.delimiter, odd.text) == ("a b$cd", "x\n")
    [empty] = heredocs("cat <<''\nx\n\n")
    assert empty.text == "x\n"


def test_a_here_document_may_begin_in_a_substitution_and_end_after_the_line() -> None:
    argument = word("$(cat <<E\nx\nE\n)b")
    assert argument.parts[1] == n.Literal("b")
    parser = Parser("echo $(cat <<E) b\nx\nE\nnext\n")
    assert parser.next_command() is not None
    assert [warning.message for warning in parser.warnings] == ["command substitution: 1 unterminated here-document"]
    following = parser.next_command()
    assert isinstance(following, n.SimpleCommand)
    assert following.words == (lit("next"),)


def test_a_here_document_ended_by_the_end_of_the_file_is_a_warning() -> None:
    parser = Parser("cat <<E\nx\n")
    assert parser.next_command() is not None
    assert parser.warnings[0].message == "here-document at line 1 delimited by end-of-file (wanted `E')"


def test_lists_and_pipelines() -> None:
    command = parse("a && b || c | d & ! e; time -p f")
    assert isinstance(command, n.CommandList)
    background, negated, timed = command.items
    assert background.background
    assert isinstance(background.command, n.AndOr)
    assert [item.op for item in background.command.rest] == ["&&", "||"]
    assert negated.command == n.Pipeline((simple("e"),), negated=True)
    assert timed.command == n.Pipeline((simple("f"),), timed=True, posix_time=True)
    assert parse("! ! a") == n.Pipeline((simple("a"),)) or parse("! ! a") == simple("a")
    assert parse("time") == n.Pipeline((), timed=True)
    assert parse("a |& b") == parse("a 2>&1 | b")


def test_arithmetic_or_two_parentheses() -> None:
    assert isinstance(parse("((a))"), n.ArithCommand)
    assert isinstance(parse("((a); b)"), n.Subshell)
    assert isinstance(part("$((1))"), n.ArithSub)
    assert isinstance(part("$((a); b)"), n.CommandSub)
    assert isinstance(part("$(((1)))"), n.ArithSub)


def test_conditions() -> None:
    command = parse("[[ -f a && ! ( b == @(c|d e)* || $x =~ ^(a|b c)$ ) ]]")
    assert isinstance(command, n.Conditional)
    assert isinstance(command.expr, n.CondAnd)
    negated = command.expr.operands[1]
    assert isinstance(negated, n.CondNot)
    assert isinstance(negated.operand, n.CondGroup)
    either = negated.operand.operand
    assert isinstance(either, n.CondOr)
    assert either.operands[0] == n.CondBinary("==", lit("b"), lit("@(c|d e)*"))
    assert either.operands[1] == n.CondBinary("=~", n.Word((n.Param("x"),)), lit("^(a|b c)$"))
    assert parse("[[ a ]]") == n.Conditional(n.CondUnary("-n", lit("a")))


def test_compound_commands() -> None:
    loop = parse("for x; do a; done")
    assert isinstance(loop, n.For)
    assert loop.words == (n.Word((n.DoubleQuoted((n.Param("@"),)),)),)
    counted = parse("for ((i=0;;i++)) { a; }")
    assert isinstance(counted, n.ArithFor)
    assert counted.test.expr == n.ArithNumber(1)
    case = parse("case $x in (a|b) c;& (esac) ;;& *) d; esac")
    assert isinstance(case, n.Case)
    assert [clause.terminator for clause in case.clauses] == [";&", ";;&", ";;"]
    assert parse("if a; then b; else if c; then d; fi; fi") == parse("if a; then b; elif c; then d; fi")
    for text in ("f() { a; }", "function f { a; }", "function f() { a; }", "f ()\n{ a; }"):
        assert parse(text) == n.Function("f", n.Group(simple("a")))
    assert parse("coproc a b") == n.Coproc("COPROC", simple("a b"))
    assert parse("coproc a { b; }") == n.Coproc("a", n.Group(simple("b")))


def test_reserved_words_are_words_elsewhere() -> None:
    assert len(simple("echo if then { } [[ time !").words) == 8
    assert simple("\\if").words == (n.Word((n.Escaped("i"), n.Literal("f"))),)
    assert simple("x=1 if").words == (lit("if"),)


def test_comments_and_continuations() -> None:
    assert simple("a # b\n") == simple("a")
    assert simple("a b#c 'x'#d").words[1] == lit("b#c")
    assert simple("a\\\nb c\\\n d").words == (lit("ab"), lit("c"), lit("d"))


def test_extended_patterns_need_the_option() -> None:
    assert word("a@(b|c $x)", extglob=True).parts == (n.Literal("a@(b|c "), n.Param("x"), n.Literal(")"))
    with pytest.raises(ShellSyntaxError):
        word("a@(b)")


def test_line_numbers() -> None:
    commands = list(parse_script("a\n\nb \\\n c\n$(d\ne)\n{\nf; }\n"))
    assert [command.line for command in commands] == [1, 4, 6, 7]


def test_commands_are_read_no_further_than_needed() -> None:
    lines = iter(["a\n", "if b\n", "then c; fi\n", "d 'e\n", "f'\n", "cat <<E\n", "x\n", "E\n", "last"])
    seen: list[str] = []

    def read() -> str | None:
        line = next(lines, None)
        if line is not None:
            seen.append(line)
        return line

    parser = Parser(read)
    counts = []
    while parser.next_command() is not None:
        counts.append(len(seen))
    assert counts == [1, 3, 5, 8, 9]


def test_an_error_comes_after_the_commands_before_it_and_leaves_the_next_line() -> None:
    parser = Parser("a\nb )\nc\n")
    assert parser.next_command() == simple("a")
    with pytest.raises(ShellSyntaxError):
        parser.next_command()
    assert parser.next_command() == simple("c")
    assert parser.next_command() is None


def test_text_is_byte_transparent() -> None:
    assert part("\udcff\udc80") == n.Literal("\udcff\udc80")
