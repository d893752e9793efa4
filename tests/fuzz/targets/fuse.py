"""A kernel's side that sends a FUSE session anything: in a sandbox, that side is a guest's."""

from __future__ import annotations

import random
from collections.abc import Hashable
from struct import pack, unpack_from

from belljar.abi.flags import S_IFREG
from belljar.abi.limits import MIB
from belljar.abi.records import Owner
from belljar.fuse import protocol as fuse
from belljar.fuse.protocol import IN_HEADER, UNANSWERED, Malformed, parse_request
from belljar.fuse.session import CREATE, Session
from belljar.kernel.fs.memory import File, MemoryServer
from belljar.kernel.fs.quota import Quota
from tests.contract.servers import Ticking
from tests.fuse.messages import Answer, ask, init, read_in, request, setattr_in, write_in
from tests.fuzz.driver import Target

_NAMES = [b"f", b"d", b"s", b"new", b"", b".", b"..", b"a/b", b"x" * 255, b"x" * 256, b"\xff\xfe", b"f\0g"]
_NODES = [1, 1, 1, 2, 3, 4, 0, 1 << 40, (1 << 64) - 1]
_NUMBERS = [0, 1, 2, 5, 4096, 1 << 20, 1 << 31, (1 << 32) - 1]
_LARGE = [*_NUMBERS, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]
_QUOTA = 4 * MIB


class Fuse(Target):
    def __init__(self) -> None:
        self._neighbours = memory()
        self._neighbour = Session(self._neighbours, Ticking(), private=True)
        ask(self._neighbour, init())

    def close(self) -> None:
        self._neighbour.close()

    def piece(self, rng: random.Random) -> bytes:
        name, node, handle = rng.choice(_NAMES) + b"\0", rng.choice(_NODES), rng.choice((1, 1, 2, 3, 0, 1 << 50))
        number, large, flags = rng.choice(_NUMBERS), rng.choice(_LARGE), rng.choice((0, 1, 2, 2, 3, 0o2002, 0o1002))
        data = rng.choice((b"", b"data", bytes(5000)))
        opcode, body = rng.choice(
            [
                (fuse.LOOKUP, name), (fuse.LOOKUP, name), (fuse.GETATTR, bytes(16)), (fuse.READLINK, b""),
                (fuse.SYMLINK, name + rng.choice(_NAMES) + b"\0"), (fuse.MKNOD, pack("<IIII", number, 0, 0, 0) + name),
                (fuse.MKDIR, pack("<II", number, 0) + name), (fuse.UNLINK, name), (fuse.RMDIR, name),
                (fuse.RENAME, pack("<Q", rng.choice(_NODES)) + name + rng.choice(_NAMES) + b"\0"),
                (fuse.RENAME2, pack("<QII", rng.choice(_NODES), number & 7, 0) + name + rng.choice(_NAMES) + b"\0"),
                (fuse.LINK, pack("<Q", rng.choice(_NODES)) + name), (fuse.OPEN, pack("<II", flags, 0)),
                (fuse.READ, read_in(handle, large, number)),
                (fuse.WRITE, write_in(handle, large, data, flags, number & 3)),
                (fuse.STATFS, b""), (fuse.RELEASE, pack("<QQQ", handle, 0, 0)), (fuse.FSYNC, pack("<QQ", handle, 0)),
                (fuse.OPENDIR, bytes(8)), (fuse.READDIR, read_in(handle, large, number)),
                (fuse.READDIRPLUS, read_in(handle, rng.choice((0, 1, 2)), 4096)), (fuse.FORGET, pack("<Q", large)),
                (fuse.BATCH_FORGET, pack("<IIQQ", rng.choice((1, 1, number)), 0, node, large)),
                (CREATE, pack("<IIII", flags, number, 0, 0) + name),
                (fuse.SETATTR, setattr_in(rng.randrange(4096), handle, large, number)),
                (fuse.FALLOCATE, pack("<QQQII", handle, large, rng.choice(_LARGE), number & 19, 0)),
                (fuse.LSEEK, pack("<QQII", handle, large, rng.choice((3, 4, 0)), 0)), (fuse.INTERRUPT, pack("<Q", 7)),
                (fuse.INIT, init(rng.choice((31, 45, 5)))[IN_HEADER.size:]), (fuse.DESTROY, b""),
                (rng.randrange(60), rng.randbytes(rng.choice((0, 8, 40)))),
            ]
        )  # fmt: skip
        return request(opcode, node, body, uid=rng.choice((0, 1000)))

    def split(self, data: bytes) -> list[bytes]:
        pieces: list[bytes] = []
        while len(data) >= IN_HEADER.size:
            length = max(unpack_from("<I", data)[0], IN_HEADER.size)
            pieces.append(data[:length])
            data = data[length:]
        return [*pieces, data] if data else pieces

    def run(self, data: bytes) -> Hashable:
        reports: list[BaseException] = []
        server = memory()
        session = Session(server, Ticking(), private=len(data) % 2 == 0, report=reports.append)
        ask(session, init())
        seen: list[tuple[int, int]] = []
        for message in self.split(data):
            try:
                asked = parse_request(memoryview(message))
            except Malformed:
                seen.append((0, 0))
                continue
            reply = session.handle(asked)
            assert (reply is None) == (asked.opcode in UNANSWERED)
            if reply is not None:
                answer = Answer(reply)
                assert answer.unique == asked.unique
                assert 0 <= answer.errno < 134
                assert len(answer.body) <= fuse.DATA_MAX
                seen.append((asked.opcode, answer.errno))
        assert reports == [], reports
        assert server.quota.bytes_used <= _QUOTA
        session.close()
        assert not any(node.opens for node in server.root.entries.values() if isinstance(node, File))
        return tuple(seen[-2:])

    def check(self) -> None:
        node = ask(self._neighbour, request(fuse.LOOKUP, 1, b"f\0")).node
        handle = ask(self._neighbour, request(fuse.OPEN, node, bytes(8))).numbers("<Q")[0]
        assert ask(self._neighbour, request(fuse.READ, node, read_in(handle, 0, 100))).body == b"contents"
        ask(self._neighbour, request(fuse.RELEASE, node, pack("<QQQ", handle, 0, 0)))


def memory() -> MemoryServer:
    """A file, a directory and a symlink."""
    server = MemoryServer(Ticking(), Quota(_QUOTA, 1000))
    file = server.create(server.root, "f", S_IFREG | 0o644, Owner(0, 0))
    assert isinstance(file, File)
    server.write(file, 0, b"contents")
    server.mkdir(server.root, "d", 0o755, Owner(0, 0))
    server.symlink(server.root, "s", "f", Owner(0, 0))
    return server


def target() -> Target:
    return Fuse()
