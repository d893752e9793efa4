"""Gives each contract test a server holding the battery's tree, once for every server in `servers.CASES`."""

from pathlib import Path

import pytest

from belljar.kernel.vfs.server import FileServer
from belljar.kernel.vfs.view import View
from tests.contract.servers import CASES, Case, view_of
from tests.contract.tree import tree_for


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "writes: runs on writable servers only")
    config.addinivalue_line("markers", "needs(*features): runs on servers that have them, see servers.Case")


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Case:
    found = request.param
    assert isinstance(found, Case)
    if "writes" in request.keywords and not found.writable:
        pytest.skip("a read-only server")
    for marker in request.node.iter_markers("needs"):
        for feature in marker.args:
            if not found.has(feature):
                pytest.skip(f"has no {feature}")
    return found


@pytest.fixture
def server(case: Case, tmp_path: Path) -> FileServer:
    return case.make(tree_for(case), tmp_path)


@pytest.fixture
def view(server: FileServer) -> View:
    return view_of(server)
