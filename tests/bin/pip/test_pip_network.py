"""pip over a real package index, through the network a sandbox was granted."""

from __future__ import annotations

import pytest

from belljar import Network, Sandbox
from tests.net.servers import PackageIndex

SITE = "/usr/local/lib/python3.15/site-packages"


@pytest.mark.parametrize("json", [True, False])
def test_install_from_an_index(json: bool) -> None:
    with PackageIndex(json=json) as server:
        server.release("My.Package", "1.0", requires=("other>=2", "extra-thing; extra == 'x'"))
        server.release("My.Package", "2.0", requires_python=">=4")
        server.release("other", "2.5", scripts={"other": "other:main"})
        server.release("other", "3.0", sdist=True)
        network = Network.allow(f"127.0.0.1:{server.port}")
        with Sandbox(network=network, env={"PIP_INDEX_URL": server.index}) as sandbox:
            result = sandbox.exec("pip install my-package")
            assert result.exit_code == 0, result.stderr
            assert result.stdout.endswith("Successfully installed my-package-1.0 other-3.0\n")
            assert "  Downloading my_package-1.0-py3-none-any.whl.metadata (" in result.stdout
            assert "Downloading my_package-1.0-py3-none-any.whl (" in result.stdout
            assert sandbox.files.read(f"{SITE}/my_package/__init__.py") == "__version__ = '1.0'\n"
            assert sandbox.exec("pip install nothing").stderr.startswith("ERROR: Could not find a version")


def test_only_the_granted_index_is_asked() -> None:
    with PackageIndex() as granted, PackageIndex() as other:
        other.release("thing", "1.0")
        with Sandbox(network=Network.allow(f"127.0.0.1:{granted.port}")) as sandbox:
            result = sandbox.exec(f"pip install -i {other.index} thing")
            assert result.exit_code == 1
            assert "the network is closed to 127.0.0.1" in result.stderr
            assert not other.requests
