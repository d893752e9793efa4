"""The compiler's command line, and what the linker's errors are explained by."""

from __future__ import annotations

import pytest

from belljar.engines.worker.cc_options import NotPossible, explain, parse_command_line, parse_steps


@pytest.mark.parametrize(
    ("words", "direct", "links"),
    [
        ("-c a.c", True, False),
        ("-c a.c -o b.o -I inc -DX=1", True, False),
        ("-c a.c b.c", False, False),
        ("-E -", True, False),
        ("a.c", False, True),
        ("a.o -lm", False, True),
        ("-lm", False, True),
        ("--version", True, False),
        ("-dumpmachine", True, False),
        ("-print-search-dirs", True, False),
        ("", True, True),
        ("-o -c a.c", False, True),  # -c is the output's name
        ("-MMD -MF a.d -c a.c", True, False),
    ],
)
def test_what_one_process_does(words: str, direct: bool, links: bool) -> None:
    line = parse_command_line(words.split())
    assert (line.direct, line.links, line.words) == (direct, links, words.split())


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("-fPIC -O2 a.c", "-O2 a.c"),
        ("-march=native -mtune=generic -msse4.2 -m64 a.c", "a.c"),
        ("-pthread -pipe -rdynamic -static a.c", "a.c"),
        ("-MD -MP -MF a.d -c a.c", "-MMD -MP -MF a.d -c a.c"),
        ("-M a.c", "-MM a.c"),
        ("a.c -Wl,-rpath,/x -Wl,-rpath=/y -Wl,--as-needed -Wl,-O1", "a.c"),
        ("a.c -Wl,--strip-all,-soname,x", "a.c -Wl,--strip-all"),
        ("-o -fPIC a.c", "-o -fPIC a.c"),
    ],
)
def test_what_has_no_meaning_here_is_dropped(words: str, kept: str) -> None:
    assert parse_command_line(words.split()).words == kept.split()


@pytest.mark.parametrize("option", ["-shared", "-fopenmp", "-fsanitize=address", "-dynamiclib"])
def test_what_cannot_be_says_why(option: str) -> None:
    with pytest.raises(NotPossible, match=f"^{option}: "):
        parse_command_line([option, "a.c"])


def test_steps_are_the_quoted_lines() -> None:
    said = 'clang version 22\nTarget: wasm32\n "clang" "-cc1" "a \\"b\\".c"\n "wasm-ld" "-o" "a.out"\n'
    assert parse_steps(said) == [["clang", "-cc1", 'a "b".c'], ["wasm-ld", "-o", "a.out"]]


def test_missing_functions_are_explained_once_each() -> None:
    said = "".join(
        f"ld: error: a.o: undefined symbol: {name}\n" for name in "fork vfork pthread_create mine fork".split()
    )
    assert explain(said) == [
        "fork, vfork: a WebAssembly program can't be copied; system, popen and exec work",
        "pthread_create: there are no threads here",
    ]
    assert explain("ld: error: a.o: undefined symbol: forked\n") == []
