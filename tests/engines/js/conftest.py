"""One interpreter and one prefix for all tests of an engine: what a test does to its run, no other run sees."""

from collections.abc import Iterator

import pytest

import belljar
from belljar import Sandbox
from belljar.api.js import JsInterpreter
from belljar.api.prefix import Prefix
from tests.engines.js_engines import engine, engines, v8

__all__ = ["engine", "engines", "v8"]


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """For programs, each in a directory of its own."""
    with Sandbox() as made:
        yield made


def lookup(key: object, *rest: object) -> object:
    """Gives back what it got; raises for 0."""
    if key == 0:
        raise ValueError("no such user")
    return {"name": "Ada", "key": key, "rest": list(rest)}


@pytest.fixture(scope="session")
def interpreters(engines: None) -> Iterator[dict[str, tuple[JsInterpreter, Prefix]]]:
    """By engine, for those who want one."""
    made: dict[str, tuple[JsInterpreter, Prefix]] = {}
    yield made
    for interpreter, _ in made.values():
        interpreter.close()


@pytest.fixture
def js(engine: str, interpreters: dict[str, tuple[JsInterpreter, Prefix]]) -> JsInterpreter:
    if engine not in interpreters:
        made = belljar.js()
        code = "globalThis.base = 'https://api.example.com'"
        interpreters[engine] = made, made.precompile(code, globals={"lookup": lookup})
    return interpreters[engine][0]


@pytest.fixture
def prefix(engine: str, js: JsInterpreter, interpreters: dict[str, tuple[JsInterpreter, Prefix]]) -> Prefix:
    return interpreters[engine][1]
