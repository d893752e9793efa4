"""A server for the clients of these tests, and a proxy before it that can fail."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from belljar import RemoteSandbox
from tests.remote.proxy import Proxy
from tests.server.conftest import own as own
from tests.server.conftest import server as server
from tests.server.conftest import steady as steady
from tests.server.serving import Server


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    proxy = Proxy(server.port)
    yield proxy
    proxy.close()


@pytest.fixture
def sb(server: Server, proxy: Proxy) -> Iterator[RemoteSandbox]:
    """A sandbox behind the proxy."""
    with RemoteSandbox(proxy.url, server.key) as sandbox:
        yield sandbox
