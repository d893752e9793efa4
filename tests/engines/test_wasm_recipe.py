"""What a directory says is to be built: its commands, or what is wrong with it."""

from __future__ import annotations

import pytest

from belljar.engines.owner.wasm_recipe import BadRecipe, Command, is_rust, parse_commands


def test_without_a_recipe_all_sources_here_are_one_command() -> None:
    files = ["b.c", "a.c", "README.md", "more/c.c"]
    assert parse_commands("tool", files, None) == [Command("tool", ("a.c", "b.c"))]


def test_a_recipe_names_commands_with_patterns_and_flags() -> None:
    text = """
    flags = ["-Wall"]
    [commands.one]
    sources = ["one.c", "lib/*.c"]
    [commands.two]
    sources = ["*.cc"]
    flags = ["-DTWO"]
    """
    files = ["one.c", "lib/b.c", "lib/a.c", "lib/deep/c.c", "two.cc", "notes"]
    one, two = parse_commands("x", files, text)
    assert one == Command("one", ("one.c", "lib/a.c", "lib/b.c"), ("-Wall",))
    assert two == Command("two", ("two.cc",), ("-Wall", "-DTWO"))
    assert (one.is_cplusplus, two.is_cplusplus) == (False, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "nothing to build"),
        ("x = ", "belljar.toml: "),
        ("", "names no command"),
        ("commands = 3", "names no command"),
        ("[commands.a]", "commands.a: needs sources"),
        ("[commands]\na = 1", "commands.a: is no table"),
        ("[commands.a]\nsources = 'a.c'", "sources must be a list of strings"),
        ("[commands.a]\nsources = ['none.c']", "no source here is called 'none.c'"),
        ("[commands.a]\nsources = ['../x.c']", "no source here is called '../x.c'"),
        ("[commands.a]\nsource = ['x.c']", "unknown: source; known: flags, sources"),
        ("[commands.'../a']\nsources = ['x.c']", "can't be a command's name"),
        ("[commands.-a]\nsources = ['x.c']", "can't be a command's name"),
        ("name = 'x'", "unknown: name"),
    ],
)
def test_what_is_wrong_is_said(text: str | None, said: str) -> None:
    with pytest.raises(BadRecipe) as raised:
        parse_commands("tool", [] if text is None else ["x.c"], text)
    assert said in str(raised.value)


def test_the_directorys_name_must_do_as_a_command() -> None:
    with pytest.raises(BadRecipe):
        parse_commands("my tool", ["x.c"], None)


def test_rust_or_c_but_not_both() -> None:
    assert is_rust(["Cargo.toml", "src"])
    assert not is_rust(["belljar.toml", "a.c"])
    with pytest.raises(BadRecipe, match="keep the first"):
        is_rust(["Cargo.toml", "belljar.toml"])
