"""Requests as a kernel makes them, for tests without one."""

from struct import pack

from belljar.fuse import protocol as fuse
from belljar.fuse.protocol import IN_HEADER, OUT_HEADER, parse_request
from belljar.fuse.session import CREATE as CREATE
from belljar.fuse.session import Reply, Session


def request(opcode: int, node: int = 1, body: bytes = b"", *, unique: int = 7, uid: int = 0, gid: int = 0) -> bytes:
    return IN_HEADER.pack(IN_HEADER.size + len(body), opcode, unique, node, uid, gid, 1, 0, 0) + body


def init(minor: int = 45, major: int = 7) -> bytes:
    return request(fuse.INIT, 0, pack("<IIIII44x", major, minor, 1 << 17, 0xFFFFFFFF, 0xFFFFFFFF))


def read_in(handle: int, offset: int, size: int) -> bytes:
    return pack("<QQI20x", handle, offset, size)


def write_in(handle: int, offset: int, data: bytes, flags: int = 0, write_flags: int = 0) -> bytes:
    return pack("<QQII8xI4x", handle, offset, len(data), write_flags, flags) + data


def setattr_in(valid: int, handle: int = 0, size: int = 0, mode: int = 0, mtime: int = 0) -> bytes:
    return pack("<I4xQQQqqqIIIIIII4x", valid, handle, size, 0, 0, mtime, 0, 0, 0, 0, mode, 0, 0, 0)


class Answer:
    """A reply, taken apart."""

    def __init__(self, reply: Reply) -> None:
        length, error, self.unique = OUT_HEADER.unpack(reply.header)
        assert length == OUT_HEADER.size + len(reply.body)
        assert error <= 0
        assert not (error and reply.body)
        self.errno = -error
        self.body = reply.body
        self.undo = reply.undo

    def numbers(self, record: str) -> tuple[int, ...]:
        from struct import unpack_from

        found: tuple[int, ...] = unpack_from(record, self.body)
        return found

    @property
    def node(self) -> int:
        """Of an entry: its number."""
        return self.numbers("<Q")[0]


def ask(session: Session, message: bytes) -> Answer:
    """The answer to a request that has one."""
    reply = session.handle(parse_request(memoryview(message)))
    assert reply is not None
    answer = Answer(reply)
    assert answer.unique == 7
    return answer
