"""Sessions without a kernel: what is given is counted, what makes no sense is refused, nothing is taken on trust."""

from struct import pack

import pytest

from belljar.abi.errno import (
    EBADF,
    EEXIST,
    EINVAL,
    EIO,
    ENAMETOOLONG,
    ENFILE,
    ENOENT,
    ENOSYS,
    ENOTEMPTY,
    EPROTO,
    EROFS,
    ESTALE,
)
from belljar.abi.flags import O_APPEND, O_CREAT, O_EXCL, O_RDONLY, O_RDWR, O_WRONLY, S_IFDIR, S_IFREG, S_ISGID
from belljar.abi.records import NANO, Owner, SetAttr, Stat
from belljar.fuse import protocol as fuse
from belljar.fuse.session import Session
from belljar.kernel.fs.memory import Directory, File, MemoryServer
from belljar.kernel.vfs.server import Node
from tests.contract.servers import Ticking, memory
from tests.fuse.messages import CREATE, Answer, ask, init, read_in, request, setattr_in, write_in


@pytest.fixture
def server() -> MemoryServer:
    made = memory()
    made.create(made.root, "f", S_IFREG | 0o644, Owner(1, 2))
    file = made.root.entries["f"]
    assert isinstance(file, File)
    made.write(file, 0, b"hello")
    made.mkdir(made.root, "d", 0o755, Owner(1, 2))
    return made


@pytest.fixture
def session(server: MemoryServer) -> Session:
    return started(Session(server, Ticking()))


def started(session: Session) -> Session:
    assert ask(session, init()).errno == 0
    return session


def lookup(session: Session, name: bytes, node: int = 1) -> Answer:
    return ask(session, request(fuse.LOOKUP, node, name + b"\0"))


def opened(session: Session, node: int, flags: int = O_RDWR) -> int:
    return ask(session, request(fuse.OPEN, node, pack("<II", flags, 0))).numbers("<Q")[0]


def create(session: Session, name: bytes, flags: int = O_RDWR | O_CREAT) -> Answer:
    return ask(session, request(CREATE, 1, pack("<IIII", flags, S_IFREG | 0o640, 0, 0) + name + b"\0", uid=5, gid=6))


def forget(session: Session, node: int, times: int) -> None:
    message = request(fuse.FORGET, node, pack("<Q", times))
    assert session.handle(fuse.parse_request(memoryview(message))) is None


@pytest.mark.parametrize(("major", "minor", "said"), [(7, 45, (7, 38)), (7, 31, (7, 31)), (8, 1, (7, 38))])
def test_the_version_is_agreed_on(server: MemoryServer, major: int, minor: int, said: tuple[int, int]) -> None:
    answer = ask(Session(server, Ticking()), init(minor, major))
    assert answer.numbers("<II") == said
    assert len(answer.body) == 64


@pytest.mark.parametrize(("major", "minor"), [(7, 30), (6, 40)])
def test_an_older_kernel_is_refused(server: MemoryServer, major: int, minor: int) -> None:
    assert ask(Session(server, Ticking()), init(minor, major)).errno == EPROTO


def test_nothing_is_answered_before_the_start(server: MemoryServer) -> None:
    assert lookup(Session(server, Ticking()), b"f").errno == EINVAL


def test_lookups_are_counted(session: Session) -> None:
    node = lookup(session, b"f").node
    assert [lookup(session, b"f").node, lookup(session, b"d").node] == [node, node + 1]
    forget(session, node, 1)
    assert ask(session, request(fuse.GETATTR, node, bytes(16))).errno == 0
    forget(session, node, 1)
    assert ask(session, request(fuse.GETATTR, node, bytes(16))).errno == ESTALE
    assert lookup(session, b"f").node not in (node, node + 1)
    forget(session, 1, 1 << 40)
    assert lookup(session, b"f").errno == 0
    message = request(fuse.BATCH_FORGET, 0, pack("<IIQQQQ", 2, 0, node + 1, 1, node + 2, 9))
    assert session.handle(fuse.parse_request(memoryview(message))) is None
    assert ask(session, request(fuse.GETATTR, node + 1, bytes(16))).errno == ESTALE


def test_what_the_kernel_did_not_take_is_taken_back(session: Session, server: MemoryServer) -> None:
    answer = create(session, b"new")
    node, handle = answer.node, answer.numbers("<128xQ")[0]
    file = server.root.entries["new"]
    assert isinstance(file, File)
    assert (file.opens, file.uid, file.gid, file.mode) == (1, 5, 6, S_IFREG | 0o640)
    assert answer.undo is not None
    answer.undo()
    assert file.opens == 0
    assert ask(session, request(fuse.READ, node, read_in(handle, 0, 5))).errno == EBADF
    listing = opened_directory(session)
    answer = ask(session, request(fuse.READDIRPLUS, 1, read_in(listing, 0, 4096)))
    assert answer.undo is not None
    answer.undo()
    assert len(session._nodes) == 1


def opened_directory(session: Session, node: int = 1) -> int:
    return ask(session, request(fuse.OPENDIR, node, bytes(8))).numbers("<Q")[0]


@pytest.mark.parametrize("private", [True, False])
def test_how_long_things_may_be_kept(server: MemoryServer, private: bool) -> None:
    session = started(Session(server, Ticking(), private=private))
    seconds = fuse.FOREVER if private else 0
    assert lookup(session, b"f").numbers("<16xQQ") == (seconds, seconds)
    missing = lookup(session, b"no")
    assert (missing.errno, missing.body and missing.numbers("<Q8xQ")) == (
        (0, (0, seconds)) if private else (ENOENT, b"")
    )
    node = lookup(session, b"f").node
    flags = ask(session, request(fuse.OPEN, node, bytes(8))).numbers("<8xI")[0]
    assert flags == (fuse.FOPEN_KEEP_CACHE if private else 0)


@pytest.mark.parametrize(("minor", "kept"), [(43, (0, 0, 0, 0)), (44, (2, 2, 500_000_000, 500_000_000))])
def test_names_are_kept_for_a_while_if_that_can_be_taken_back(
    server: MemoryServer, minor: int, kept: tuple[int, ...]
) -> None:
    session = Session(server, Ticking(), valid=lambda: 2.5)
    ask(session, init(minor))
    assert lookup(session, b"f").numbers("<16xQQII") == kept
    assert ask(session, request(fuse.GETATTR, 1, bytes(16))).numbers("<QI") == (kept[0], kept[2])
    assert lookup(session, b"no").errno == (0 if any(kept) else ENOENT)


def test_contents_are_kept_while_the_server_can_tell_that_they_are_the_same(server: MemoryServer) -> None:
    settled = True

    class Settling(MemoryServer):
        def settled(self, stat: Stat) -> bool:
            return settled

    server.__class__ = Settling
    session = started(Session(server, Ticking()))
    node = lookup(session, b"f").node

    def kept() -> bool:
        return bool(ask(session, request(fuse.OPEN, node, bytes(8))).numbers("<8xI")[0] & fuse.FOPEN_KEEP_CACHE)

    assert [kept(), kept(), kept()] == [False, True, True]
    file = server.root.entries["f"]
    assert isinstance(file, File)
    server.write(file, 0, b"HELLO")
    assert [kept(), kept()] == [False, True]
    settled = False
    assert [kept(), kept()] == [False, False]
    settled = True
    assert [kept(), kept()] == [False, True]


def test_handles(session: Session) -> None:
    node, other = lookup(session, b"f").node, lookup(session, b"d").node
    reader, writer = opened(session, node, O_RDONLY), opened(session, node, O_WRONLY)
    assert ask(session, request(fuse.READ, node, read_in(reader, 1, 3))).body == b"ell"
    for refused in (
        request(fuse.READ, node, read_in(writer, 0, 3)),
        request(fuse.READ, node, read_in(99, 0, 3)),
        request(fuse.READ, other, read_in(reader, 0, 3)),
        request(fuse.WRITE, node, write_in(reader, 0, b"x")),
        request(fuse.READDIR, 1, read_in(reader, 0, 4096)),
        request(fuse.FSYNC, node, pack("<QQ", 99, 0)),
        request(fuse.FALLOCATE, node, pack("<QQQI4x", reader, 0, 1, 0)),
    ):
        assert ask(session, refused).errno == EBADF
    assert ask(session, request(fuse.WRITE, node, write_in(writer, 9, b"end", O_APPEND))).numbers("<I") == (3,)
    assert ask(session, request(fuse.READ, node, read_in(reader, 0, 99))).body == b"helloend"
    mapped = write_in(writer, 0, b"J", O_APPEND, fuse.WRITE_CACHE)
    assert ask(session, request(fuse.WRITE, node, mapped)).errno == 0
    assert ask(session, request(fuse.READ, node, read_in(reader, 0, 99))).body == b"Jelloend"
    assert ask(session, request(fuse.RELEASE, node, pack("<QQQ", reader, 0, 0))).errno == 0
    assert ask(session, request(fuse.READ, node, read_in(reader, 0, 3))).errno == EBADF


def test_attributes(session: Session, server: MemoryServer) -> None:
    node = lookup(session, b"f").node
    file = server.root.entries["f"]
    change = setattr_in(fuse.FATTR_MODE | fuse.FATTR_MTIME | fuse.FATTR_SIZE, size=2, mode=S_IFREG | 0o4700, mtime=-5)
    answer = ask(session, request(fuse.SETATTR, node, change))
    assert answer.numbers("<24xQ") == (2,)
    assert (file.mode, file.mtime) == (S_IFREG | 0o4700, -5 * NANO)
    ask(session, request(fuse.SETATTR, node, setattr_in(fuse.FATTR_MTIME | fuse.FATTR_MTIME_NOW)))
    assert file.mtime > 0
    assert ask(session, request(fuse.SETATTR, node, setattr_in(fuse.FATTR_SIZE, size=1 << 63))).errno == EINVAL


def test_new_files_of_a_set_group_id_directory(session: Session, server: MemoryServer) -> None:
    directory = server.root.entries["d"]
    server.setattr(directory, SetAttr(mode=0o2775))
    node = lookup(session, b"d").node
    ask(session, request(fuse.MKDIR, node, pack("<II", 0o755, 0) + b"sub\0", uid=5, gid=6))
    assert isinstance(directory, Directory)
    made = directory.entries["sub"]
    assert (made.uid, made.gid, made.mode) == (5, 2, S_IFDIR | S_ISGID | 0o755)


def test_a_file_that_others_created_meanwhile(session: Session, server: MemoryServer) -> None:
    assert create(session, b"f").errno == 0
    assert create(session, b"f", O_RDWR | O_CREAT | O_EXCL).errno == EEXIST
    file = server.root.entries["f"]
    assert isinstance(file, File)
    assert file.opens == 1


def test_a_listing_is_of_one_moment(session: Session, server: MemoryServer) -> None:
    for number in range(50):
        server.create(server.root, f"file{number}", S_IFREG, Owner(0, 0))
    handle, offset, found = opened_directory(session), 0, []
    while body := ask(session, request(fuse.READDIR, 1, read_in(handle, offset, 256))).body:
        at = 0
        while at < len(body):
            _, offset, length, _ = Answer.numbers(_bytes(body[at:]), "<QQII")
            found.append(body[at + 24 : at + 24 + length])
            at += 24 + length + -length % 8
        server.unlink(server.root, server.readdir(server.root)[-1].name)
    assert len(found) == len(set(found)) == 54


def test_directories_that_are_read_are_bounded(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("belljar.fuse.session.LISTED_MAX", 10)
    handles = [opened_directory(session) for _ in range(4)]

    def read(handle: int, offset: int = 0) -> Answer:
        return ask(session, request(fuse.READDIR, 1, read_in(handle, offset, 4096)))

    assert [read(handle).errno for handle in handles] == [0, 0, ENFILE, ENFILE]
    assert read(handles[0], 4).body == b""  # its end
    assert read(handles[2]).body
    ask(session, request(fuse.RELEASEDIR, 1, pack("<QQQ", handles[1], 0, 0)))
    assert read(handles[3]).body
    assert read(handles[3], 2).body == read(handles[2], 2).body


def _bytes(data: bytes) -> Answer:
    made = Answer.__new__(Answer)
    made.body = data
    return made


def test_a_directory_never_moves_into_itself(session: Session, server: MemoryServer) -> None:
    """The kernel's own checks are not relied on."""
    node = lookup(session, b"d").node
    inner = ask(session, request(fuse.MKDIR, node, pack("<II", 0o755, 0) + b"sub\0")).node
    for flags in (0, 2):
        for directory, name, into, new in ((1, b"d", node, b"sub"), (1, b"d", inner, b"x"), (node, b"sub", 1, b"d")):
            message = request(fuse.RENAME2, directory, pack("<QII", into, flags, 0) + name + b"\0" + new + b"\0")
            assert ask(session, message).errno in (EINVAL, ENOENT, ENOTEMPTY)
    assert server.readdir(server.root)[1].name == "d"


@pytest.mark.parametrize(
    ("message", "errno"),
    [
        (request(fuse.LOOKUP, 1, b"f"), EINVAL),
        (request(fuse.LOOKUP, 1, b"f\0x"), EINVAL),
        (request(fuse.LOOKUP, 1, b"\0"), EINVAL),
        (request(fuse.LOOKUP, 1, b"..\0"), EINVAL),
        (request(fuse.LOOKUP, 1, b"a/b\0"), EINVAL),
        (request(fuse.LOOKUP, 1, b"x" * 256 + b"\0"), ENAMETOOLONG),
        (request(fuse.LOOKUP, 99, b"f\0"), ESTALE),
        (request(fuse.GETATTR, 0, bytes(16)), ESTALE),
        (request(fuse.OPEN, 2, b""), EINVAL),
        (request(fuse.OPEN, 2, pack("<II", 3, 0)), EINVAL),
        (request(fuse.RENAME, 1, pack("<Q", 1) + b"f\0"), EINVAL),
        (request(fuse.RENAME2, 1, pack("<QII", 1, 4, 0) + b"f\0g\0"), EINVAL),
        (request(fuse.LINK, 1, pack("<Q", 77) + b"g\0"), ESTALE),
        (request(fuse.SYMLINK, 1, b"s\0" + b"x" * 5000 + b"\0"), ENAMETOOLONG),
        (request(fuse.WRITE, 2, pack("<QQII8xI4x", 1, 0, 9, 0, 0) + b"few"), EINVAL),
        (request(fuse.READ, 2, read_in(1, 1 << 63, 1)), EINVAL),
        (request(999, 1), ENOSYS),
        (request(22, 1, bytes(8) + b"user.x\0"), ENOSYS),
    ],
)
def test_requests_that_no_kernel_sends(session: Session, message: bytes, errno: int) -> None:
    lookup(session, b"f")
    assert ask(session, message).errno == errno


def test_a_read_only_session_changes_nothing_whatever_the_kernel_says(server: MemoryServer) -> None:
    session = started(Session(server, Ticking(), read_only=True))
    node = lookup(session, b"f").node
    for message in (
        request(fuse.UNLINK, 1, b"f\0"),
        request(fuse.SETATTR, node, setattr_in(fuse.FATTR_SIZE)),
        request(CREATE, 1, bytes(16) + b"g\0"),
        request(fuse.OPEN, node, pack("<II", O_RDWR, 0)),
        request(fuse.WRITE, node, write_in(1, 0, b"x")),
    ):
        assert ask(session, message).errno == EROFS
    assert set(server.root.entries) == {"f", "d"}


def test_what_a_server_of_the_owner_does_wrong_is_eio(server: MemoryServer) -> None:
    reports: list[BaseException] = []

    class Wrong(MemoryServer):
        def stat(self, node: Node) -> Stat:
            return super().stat(node)._replace(size=-1)

    server.__class__ = Wrong
    session = started(Session(server, Ticking(), report=reports.append))
    assert lookup(session, b"f").errno == EIO
    assert len(reports) == 1
    assert len(session._nodes) == 1
