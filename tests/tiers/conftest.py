"""One battery of cases for every tier and both fronts: `make tiers` runs all of them, `make test` a sample.

A tier is one line in `TIERS`. What it documents as different stands in `differences.py`.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest

from belljar import AsyncRemoteSandbox, AsyncSandbox, RemoteSandbox, Sandbox, SandboxCreationError
from belljar.native.launch_host import explain_refusal
from tests.server.serving import Server
from tests.tiers.differences import DIFFERENCES, Refused
from tests.tiers.fronts import AsyncFront, Front, Loop, SyncFront


@dataclass(frozen=True)
class Tier:
    """A place where sandboxes run."""

    name: str
    options: dict[str, Any]
    """The arguments that make a sandbox of this tier."""
    sampled: int = 1
    """`make test` runs one case of so many."""
    sandbox: type[Sandbox] = Sandbox
    async_sandbox: type[AsyncSandbox] = AsyncSandbox

    def refusal(self, features: Iterable[str]) -> Refused | None:
        """The error by which the tier refuses one of these features, or this machine the tier."""
        if self.is_forbidden():
            return Refused(SandboxCreationError, "as root, sysctl")
        found = [DIFFERENCES[self.name].get(feature) for feature in features]
        return next((refused for refused in found if isinstance(refused, Refused)), None)

    def is_forbidden(self) -> bool:
        """Whether this machine has no user namespaces, which the tier needs."""
        return self.name not in ("virtual", "remote") and bool(explain_refusal())

    def behaviour(self, feature: str, usual: Any) -> Any:
        return DIFFERENCES[self.name].get(feature, usual)


TIERS = [
    Tier("virtual", {}),
    Tier("native", {"tier": "native"}, sampled=6),
    Tier("microvm", {"tier": "microvm"}, sampled=60),
    Tier("remote", {}, 8, RemoteSandbox, AsyncRemoteSandbox),
    Tier("remote-native", {}, 30, RemoteSandbox, AsyncRemoteSandbox),
]
"""The remote ones are of sandboxes on `belljar serve`, a process of its own, as their clients have them."""
_SERVED = {"remote": "served", "remote-native": "served_natively"}
"""The servers' fixtures."""


class Make(Protocol):
    """Makes sandboxes of the case's tier and front, which are closed after it."""

    front: Front

    def __call__(self, **options: Any) -> Sandbox: ...
    def restore(self, *args: Any, **options: Any) -> Sandbox: ...
    def resume(self, *args: Any, **options: Any) -> Sandbox: ...
    def keep(self, sandbox: Sandbox) -> Sandbox: ...


class Maker:
    def __init__(self, tier: Tier, front: Front) -> None:
        self.front = front
        self._tier = tier
        self._made: list[Sandbox] = []

    def __call__(self, **options: Any) -> Sandbox:
        return self.keep(self.front.make({**self._tier.options, **options}))

    def restore(self, *args: Any, **options: Any) -> Sandbox:
        return self.keep(self.front.call("restore", *args, **options))

    def resume(self, *args: Any, **options: Any) -> Sandbox:
        return self.keep(self.front.call("resume", *args, **options))

    def keep(self, sandbox: Sandbox) -> Sandbox:
        """Have a sandbox closed after the case."""
        self._made.append(sandbox)
        return sandbox

    def close(self) -> None:
        while self._made:
            self._made.pop().close()


@pytest.fixture(scope="session")
def loop() -> Iterator[Loop]:
    loop = Loop()
    yield loop
    loop.close()


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    yield from _serve(tmp_path_factory.mktemp("server"))


@pytest.fixture(scope="session")
def served_natively(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    yield from _serve(tmp_path_factory.mktemp("server"), "--tier", "native")


def _serve(directory: Path, *options: str) -> Iterator[Server]:
    (directory / "config.toml").write_text("[quota]\nexecs_per_minute = 1000000\n")
    server = Server(directory, "--config", str(directory / "config.toml"), *options)
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(params=TIERS, ids=lambda tier: tier.name)
def tier(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Tier:
    found: Tier = request.param
    if found.name in _SERVED:
        server: Server = request.getfixturevalue(_SERVED[found.name])
        monkeypatch.setenv("BELLJAR_URL", server.url)
        monkeypatch.setenv("BELLJAR_KEY", server.key)
    return found


@pytest.fixture(params=["sync", "async"])
def front(request: pytest.FixtureRequest, loop: Loop, tier: Tier) -> Front:
    return SyncFront(tier.sandbox) if request.param == "sync" else AsyncFront(loop, tier.async_sandbox)


@pytest.fixture
def make(tier: Tier, front: Front) -> Iterator[Make]:
    maker = Maker(tier, front)
    yield maker
    maker.close()


@pytest.fixture
def sb(make: Make) -> Sandbox:
    return make()


@pytest.fixture
def amake(tier: Tier) -> Callable[..., AsyncSandbox]:
    """For cases of asyncio itself: makes an `AsyncSandbox` that is not started."""
    return lambda **options: tier.async_sandbox(**{**tier.options, **options})


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "feature(name): what a case needs; where a tier refuses it, its error is expected"
    )


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Expect the documented error of a case whose tier refuses what it needs."""
    tier = pyfuncitem.funcargs.get("tier")
    features = [mark.args[0] for mark in pyfuncitem.iter_markers("feature")]
    refused = tier.refusal(features) if isinstance(tier, Tier) else None
    if refused is None:
        return (yield)
    with pytest.raises(refused.error, match=refused.text):
        yield
    return True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    chosen = [item for item in items if _is_chosen(item)]
    config.hook.pytest_deselected(items=[item for item in items if not _is_chosen(item)])
    items[:] = chosen


def _is_chosen(item: pytest.Item) -> bool:
    """Whether it is run: all are in the whole battery, in `make test` a sample, which is the same each time. There are
    fewer on the front that shares its code."""
    chosen: dict[str, Any] = item.callspec.params if hasattr(item, "callspec") else {}
    tier = chosen.get("tier")
    if not isinstance(tier, Tier):
        return True
    if tier.is_forbidden() and {"sb", "web"} & set(getattr(item, "fixturenames", ())):
        return False  # only a case that makes its sandboxes itself can tell how that fails
    if os.environ.get("BELLJAR_WHOLE"):
        return True
    return zlib.crc32(item.nodeid.encode()) % (tier.sampled * (3 if chosen.get("front") == "async" else 1)) == 0
