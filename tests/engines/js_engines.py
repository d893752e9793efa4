"""The engines that JavaScript may run on, one after the other in one test process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest

from belljar.engines.owner import template_host
from belljar.engines.owner.js_choice_host import VARIABLE

ENGINES: Final = ("v8", "quickjs")
_KINDS: Final[tuple[str, ...]] = ("js", "node")
_kept: Final[dict[tuple[str, str], template_host.Template]] = {}


@contextmanager
def using(engine: str) -> Iterator[str]:
    """JavaScript runs on that engine meanwhile. Its templates are kept: the next who asks for it need not wait."""
    templates = template_host._templates
    before = {kind: templates.pop(kind) for kind in _KINDS if kind in templates}
    templates |= {kind: _kept.pop((engine, kind)) for kind in _KINDS if (engine, kind) in _kept}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, engine)
        yield engine
    for kind in _KINDS:
        if kind in templates:
            if (engine, kind) in _kept:  # of one who asked for the same within this
                _kept[engine, kind].close()
            _kept[engine, kind] = templates.pop(kind)
    templates |= before


def close_all() -> None:
    for template in _kept.values():
        template.close()
    _kept.clear()


@pytest.fixture(scope="session")
def engines() -> Iterator[None]:
    yield
    close_all()


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, engines: None) -> Iterator[str]:
    """What JavaScript runs on in this test, and in no other: it is run once for each."""
    with using(request.param) as name:
        yield name


@pytest.fixture
def v8(engines: None) -> Iterator[None]:
    """For tests of what only V8 has."""
    with using("v8"):
        yield
