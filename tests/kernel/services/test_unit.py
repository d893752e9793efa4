"""Descriptions of services: what is taken, what is refused and why, and the order they are started in."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belljar.kernel.services.unit import Ready, Unit, UnitError, make_unit, parse_unit, render_unit, start_order

GUIDE = Path(__file__).parents[3] / "docs" / "services.md"

REFUSED = {
    "": "`command` is missing",
    "command": "end of document",
    "command = ''": "not empty",
    "command = 3": "list of texts",
    "command = []": "list of texts",
    "command = ['a', 3]": "not empty",
    "command = 'a'\nreddy = 'port:1'": "did you mean 'ready'?",
    "command = 'a'\nzzz = 1": "there are command",
    "command = 'a'\nready = 'port:0'": "port:8000",
    "command = 'a'\nready = 'port:65536'": "port:8000",
    "command = 'a'\nready = 'file:run'": "file:/run/name",
    "command = 'a'\nready = 'command:'": "command:...",
    "command = 'a'\nready = 8000": "port:8000",
    "command = 'a'\nrestart = 'sometimes'": "always, on-failure, never",
    "command = 'a'\nneeds = 'b'": "list of texts",
    "command = 'a'\nneeds = ['../b']": "no name of a service",
    "command = 'a'\nenv = 'A=1'": "table",
    "command = 'a'\n[env]\nA = 1": "a name and a text",
    "command = 'a'\n[env]\n'A=' = '1'": "a name and a text",
    "command = 'a'\ncwd = 'srv'": "absolute",
    "command = 'a'\nenabled = 1": "true or false",
    "command = 'a'\nstop_seconds = 0": "number of seconds",
    "command = 'a'\nstop_seconds = nan": "number of seconds",
    "command = 'a'\nready_seconds = true": "number of seconds",
    "command = 'a'\nuser = ' '": "not empty",
    "[[command]]": "not empty",
    "a = " + "[" * 2000: "a.toml",
    "command = " + "[" * 300 + "]" * 300: "more than 16 deep",
    "command = 'a'\nready = 'port:00000080" + "0" * 5000 + "'": "port:8000",
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:40])
def test_a_mistake_is_named(text: str) -> None:
    with pytest.raises(UnitError, match=re.escape(REFUSED[text])) as caught:
        parse_unit("a", text)
    assert str(caught.value).startswith("/etc/init/a.toml: ")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "-a", "a b", "a" * 65, "é"])
def test_names_are_plain(name: str) -> None:
    with pytest.raises(UnitError, match="no name of a service"):
        make_unit(name, {"command": "x"})


def test_the_guides_file() -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", GUIDE.read_text(), re.S)[:1]
    unit = parse_unit("web", text)
    assert (unit.ready, unit.needs, unit.env) == (Ready("port", 8000), ("db",), (("MODE", "production"),))
    assert set(re.findall(r"^(\w+) =", text, re.M)) - {"MODE"} | {"env"} == (
        set(Unit.__struct_fields__) - {"name", "argv"} | {"command"}
    )


texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1).filter(str.strip)
names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,8}", fullmatch=True)
units = st.fixed_dictionaries(
    {"command": texts | st.lists(texts, min_size=1)},
    optional={
        "description": texts,
        "needs": st.lists(names),
        "restart": st.sampled_from(["always", "on-failure", "never"]),
        "env": st.dictionaries(texts.filter(lambda text: "=" not in text), texts),
        "user": texts,
        "cwd": texts.map(lambda text: "/" + text),
        "ready": st.integers(1, 65535).map(lambda n: f"port:{n}") | texts.map(lambda t: f"command:{t.strip()}"),
        "enabled": st.booleans(),
        "stop_seconds": st.floats(0.01, 3600),
    },
)


@given(names, units)
def test_what_is_written_is_read_again(name: str, given: dict[str, object]) -> None:
    unit = make_unit(name, given)
    assert parse_unit(name, render_unit(unit)) == unit


@given(st.binary().map(lambda data: data.decode("utf-8", "replace")))
def test_any_text_is_a_unit_or_a_mistake(text: str) -> None:
    with suppress(UnitError):
        parse_unit("a", text)


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.lists(st.sampled_from("abcdefgh"), max_size=3)))
def test_each_is_started_after_what_it_needs(needs: dict[str, list[str]]) -> None:
    known = {name: make_unit(name, {"command": "x", "needs": list(each)}) for name, each in needs.items()}
    order, refused = start_order(known, known)
    assert set(order) | set(refused) >= set(known)
    assert not set(order) & set(refused)
    for number, name in enumerate(order):
        assert set(needs[name]) <= set(order[:number])
    for name, why in refused.items():
        assert why
        if name in known:
            assert any(need in refused for need in needs[name]), "refused for no reason"
    assert start_order(known, reversed(known)) == (order, refused)
