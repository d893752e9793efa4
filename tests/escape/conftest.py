"""A watched host, one for all the attacks of a test process."""

from collections.abc import Iterator

import pytest

from tests.engines.js_engines import engine, engines
from tests.escape.oracles import Watch

__all__ = ["engine", "engines"]


@pytest.fixture(scope="session")
def watch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watch]:
    made = Watch(tmp_path_factory.mktemp("host"))
    yield made
    made.close()
