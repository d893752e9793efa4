"""A worker that says anything when its owner asks for a snapshot, twice in a row, over a tree of a store.

Either there is a whole snapshot, or an error of ours. Nothing of another tree in the same store is ever in it.
"""

from __future__ import annotations

import random
import struct
import threading
from collections.abc import Hashable
from typing import Any

import msgspec

from belljar.abi.capture import PIECE_BYTES
from belljar.abi.errors import SandboxError
from belljar.abi.flags import S_IFCHR, S_IFDIR, S_IFIFO, S_IFLNK, S_IFREG
from belljar.abi.limits import Limits
from belljar.api import state as states
from belljar.api.offers import Offers
from belljar.api.operations import Ask, Work
from belljar.api.settings import Settings
from belljar.store.collect import check
from belljar.store.memory_host import MemoryStore
from belljar.store.objects import PIECE, Digest
from belljar.store.snapshot import Tree
from belljar.store.store import Objects
from belljar.store.stored_tree import StoredTree
from belljar.store.tree import Entry, Kind, encode_directory, links_of
from tests.fuzz.driver import Target
from tests.fuzz.targets._frames import split_frames

_MODES = [S_IFREG | 0o644, S_IFREG | 0o644, S_IFDIR | 0o755, S_IFDIR | 0o755, S_IFLNK, S_IFIFO, S_IFCHR, 0, -1]
_NUMBERS = [0, 1, 1, 2, 2, 3, 3, 4, 5, 9, -1, 1 << 62, (1 << 64) - 1]
_NAMES = [b"a", b"b", b"c", b"d", b"file", b"dir", b"..", b"", b"x/y", b"\xff", b"n" * 256]


class Capture(Target):
    def close(self) -> None:
        return

    def piece(self, rng: random.Random) -> bytes:
        return _frame(rng.choice((_begun, _page, _page, _page, _data))(rng))

    def split(self, data: bytes) -> list[bytes]:
        return split_frames(data)

    def run(self, data: bytes) -> Hashable:
        store = MemoryStore()
        objects = Objects(store)
        secret, known = objects.write([PIECE + b"of another tree", PIECE + b"known"])
        (inner,) = objects.write([encode_directory([Entry(b"file", Kind.FILE, 0o644, size=5, parts=[known])])])
        linked = Entry(b"file", Kind.FILE, 0o644, size=5, link_group=7, parts=[known])
        entries = [
            Entry(b"dir", Kind.DIRECTORY, 0o755, parts=[inner]),
            linked,
            msgspec.structs.replace(linked, name=b"l"),
        ]
        (root,) = objects.write([encode_directory(entries)])
        tree = Tree(b"/", "root", root, hard_links=[(7, 2)])
        offers = Offers(threading.RLock())
        server = StoredTree(objects, tree)
        offers.export(server, True)
        export = offers.exported(0)
        assert export is not None
        for node in (server.root, server.walk(server.root, "dir"), server.walk(server.root, "file")):
            export._give(node)
        state = states.State()
        state.exports[0] = tree
        said = iter(self.split(data))
        outcomes = []
        for _ in range(2):
            text = ""
            settings = Settings.check({"limits": Limits(files=200, file_bytes=1 << 20)})
            try:
                point = _drive(states.take(state, settings, offers, store), said)
            except SandboxError as error:
                text = str(error)
                outcomes.append(text.partition("(")[2][:30])
            else:
                outcomes.append(f"{len(point.record.trees)} trees")
                assert secret not in _reached(objects, point.digest)
            assert len(text) < 5000
            assert text.isprintable()
            assert list(check(store)) == []
            assert sum(table.count for table in state._tables.values()) <= 2 * 200 + states._SLACK
        offers.close()
        return tuple(outcomes)

    def check(self) -> None:
        return


def _drive(steps: Any, said: Any) -> states.Point:
    answer: Any = None
    try:
        step = next(steps)
        while True:
            if isinstance(step, Work):
                step = _sent(steps, step.do)
                continue
            assert isinstance(step, Ask)
            if step.name == "capture_end":
                step = steps.send(None)
                continue
            try:
                answer = msgspec.msgpack.decode(next(said)[4:])
            except (StopIteration, msgspec.DecodeError, ValueError, RecursionError):
                step = steps.throw(SandboxError("the worker ended"))
            else:
                step = steps.send(answer)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def _sent(steps: Any, work: Any) -> Any:
    """Do a step as the links do: its errors are raised in the operation."""
    try:
        value = work()
    except Exception as error:
        return steps.throw(error)
    return steps.send(value)


def _reached(objects: Objects, digest: Digest) -> set[Digest]:
    reached, todo = {digest}, [digest]
    while todo:
        new = links_of(objects.read([todo.pop()])[0]) - reached
        reached |= new
        todo += new
    return reached


def _frame(value: Any) -> bytes:
    body = msgspec.msgpack.encode(value)
    return struct.pack("<I", len(body)) + body


def _begun(rng: random.Random) -> Any:
    root = [b"/", 1, 1, rng.choice((-1, 0, 0, 1, 9)), True]
    other = [
        rng.choice((b"/m", b"/", b"m", b"/a/../b")),
        rng.choice((1, 2)),
        rng.choice(_NUMBERS),
        -1,
        rng.random() < 0.7,
    ]
    return [
        rng.choice((1, 2)),
        rng.choice(_NUMBERS),
        rng.choice(([root], [root], [root], [root, other], [])),
        [b"lost\x1b"],
    ]


def _page(rng: random.Random) -> Any:
    return [_record(rng) for _ in range(rng.choice((0, 0, 1, 2, 3, 5)))]


def _record(rng: random.Random) -> list[Any]:
    mode = rng.choice(_MODES)
    is_dir = mode == S_IFDIR | 0o755
    names = rng.sample(_NAMES[: rng.choice((4, 6, 11))], rng.randrange(4)) if is_dir or rng.random() < 0.05 else []
    size = rng.choice((0, 1, 5, 5, PIECE_BYTES + 1, 1 << 40, -5, 1 << 63))
    contents = rng.choice((None, b"x" * min(max(size, 0), 100), b"xxxxx"))
    pieces = rng.choice(([], [0, 1], [0, 2], [1, 1], [0, 1, 0, 1], [5], [0, -1], [0, 1 << 50]))
    return [
        rng.choice((1, 1, 1, 1, 2)), 1 if is_dir and rng.random() < 0.5 else rng.choice(_NUMBERS), mode,
        rng.choice((0, 0, -1, 1 << 40)), 0, rng.choice((5, -5, 1 << 63)), rng.choice((0, 0, 1, 2, 3, 4, -1)),
        rng.random() < 0.2, rng.random() < 0.8, b"target" if mode == S_IFLNK else b"", size if mode & S_IFREG else 0,
        contents, pieces, names, [rng.choice(_NUMBERS[:10]) for _ in names], rng.random() < 0.1,
    ]  # fmt: skip


def _data(rng: random.Random) -> Any:
    return rng.choice((b"", b"x", b"x" * 5000, bytes(100), 7, None))


def target() -> Target:
    return Capture()
