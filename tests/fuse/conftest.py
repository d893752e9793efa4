"""A namespace to mount in, shared by the tests of a module."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuse.inside import Namespace, can_mount


@pytest.fixture(scope="module")
def namespace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Namespace]:
    if not can_mount():
        pytest.skip("FUSE can't be mounted in a user namespace here")
    made = Namespace(Path(tmp_path_factory.mktemp("fuse")))
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def place(namespace: Namespace, tmp_path: Path) -> str:
    """A directory to mount at."""
    return str(tmp_path / "mnt")
