"""A restored sandbox whose store fails, or hangs: EIO on that file, an event, and everything else works on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping, Sequence

import pytest

from belljar import AsyncSandbox, Event, Sandbox, StoreError
from belljar.abi.limits import MIB
from belljar.store import stored_tree
from belljar.store.memory_host import MemoryStore
from belljar.store.objects import PIECE, Digest, digest_of
from belljar.store.reader_host import Kept, Reader
from belljar.store.stored_tree import PIECES

SECONDS = 3.0
"""What the store does give is given in less, on a busy machine, too."""


class Breaking(MemoryStore):
    """Does not give one object, in a way of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.bad = digest_of(PIECE + b"bad\n")
        self.hangs = False
        self.stop = threading.Event()

    def read(self, digests: Sequence[Digest]) -> Mapping[Digest, bytes]:
        if self.bad in digests:
            if self.hangs:
                self.stop.wait()
            raise StoreError("the bucket is on fire")
        return super().read(digests)


@pytest.fixture(params=["fails", "hangs"])
def store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Breaking]:
    monkeypatch.setattr(stored_tree, "PIECES", Kept(PIECES.decode, 32 * MIB, 1))
    monkeypatch.setattr(stored_tree, "Reader", lambda objects, _seconds: Reader(objects, SECONDS))
    store = Breaking()
    store.hangs = request.param == "hangs"
    with Sandbox(store=store) as sandbox:
        # In directories of their own: what is read ahead is not the matter here.
        sandbox.exec("mkdir a b; echo good > a/good; echo bad > b/bad").check()
        sandbox.snapshot("s")
    yield store
    store.stop.set()


def check_told(store: Breaking, events: list[Event]) -> None:
    (event,) = [event for event in events if event.kind == "store"]
    assert ("has not answered" if store.hangs else "on fire") in event.data["error"]


def test_sync(store: Breaking) -> None:
    events: list[Event] = []
    with Sandbox.restore("s", store=store, on_event=events.append) as sandbox:
        for n, listed in enumerate(["0\n", "0\n1\n"]):
            result = sandbox.exec(f"cat b/bad; cat a/good; echo new > b/{n}; cat b/{n}; ls b")
            assert result.stdout == f"good\nnew\n{listed}bad\n"
            assert "b/bad: Input/output error" in result.stderr
    check_told(store, events)


@pytest.mark.battery
def test_async(store: Breaking) -> None:
    events: list[Event] = []

    async def main() -> None:
        async with await AsyncSandbox.restore("s", store=store, on_event=events.append) as sandbox:
            reading = asyncio.ensure_future(sandbox.exec("cat b/bad"))
            turns = 0
            while not reading.done():  # the loop is not held up
                await asyncio.sleep(0.01)
                turns += 1
            assert "Input/output error" in (await reading).stderr
            assert turns > 5 or not store.hangs
            assert (await sandbox.exec("cat a/good")).stdout == "good\n"

    asyncio.run(main())
    check_told(store, events)
