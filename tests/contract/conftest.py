"""Gives each contract test a server holding the battery's tree, once for every server in `servers.CASES`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from belljar.kernel.vfs.server import FileServer
from belljar.kernel.vfs.view import View
from tests.contract.servers import CASES, Case, view_of
from tests.contract.tree import tree_for


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "writes: runs on writable servers only")
    config.addinivalue_line("markers", "read_only: runs on read-only servers only")
    config.addinivalue_line("markers", "needs(*features): runs on servers that have them, see servers.Case")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each test runs on the servers that can do what it asks for."""
    if "case" not in metafunc.fixturenames:
        return
    marks = list(metafunc.definition.iter_markers())
    needed = {feature for mark in marks if mark.name == "needs" for feature in mark.args}
    kinds = {mark.name for mark in marks} & {"writes", "read_only"}
    fitting = [
        case
        for case in CASES
        if not needed & case.lacks
        and ("writes" not in kinds or case.writable)
        and ("read_only" not in kinds or not case.writable)
    ]
    metafunc.parametrize("case", fitting, ids=[case.name for case in fitting])


@pytest.fixture
def server(case: Case, tmp_path: Path) -> Iterator[FileServer]:
    made = case.make(tree_for(case), tmp_path)
    yield made
    made.close()


@pytest.fixture
def view(server: FileServer) -> View:
    return view_of(server)
