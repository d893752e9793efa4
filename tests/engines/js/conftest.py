"""One interpreter and one prefix for all tests of an engine: what a test does to its run, no other run sees."""

from collections.abc import Iterator

import pytest

import belljar
from belljar.api.js import JsInterpreter, JsPrefix
from tests.engines.js_engines import engine, engines

__all__ = ["engine", "engines"]


def lookup(key: object, *rest: object) -> object:
    """Gives back what it got; raises for 0."""
    if key == 0:
        raise ValueError("no such user")
    return {"name": "Ada", "key": key, "rest": list(rest)}


@pytest.fixture(scope="session")
def js(engine: str) -> Iterator[JsInterpreter]:
    with belljar.js() as interpreter:
        yield interpreter


@pytest.fixture(scope="session")
def prefix(js: JsInterpreter) -> Iterator[JsPrefix]:
    with js.precompile("globalThis.base = 'https://api.example.com'", globals={"lookup": lookup}) as made:
        yield made
