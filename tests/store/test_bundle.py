"""Bundles: what is exported is imported, and nothing else is."""

from __future__ import annotations

import hashlib
import io
import random
from pathlib import Path

import pytest

from belljar.abi.errors import SnapshotError
from belljar.store import bundle
from belljar.store.bundle import check_bundle, read_bundle, write_bundle
from belljar.store.bundle_host import export_bundle, import_bundle
from belljar.store.collect import check
from belljar.store.compression import compress
from belljar.store.objects import OBJECT_MAX, PIECE, Record, digest_of, encode_record
from belljar.store.snapshot import (
    SnapshotRecord,
    Tree,
    Variables,
    encode_snapshot,
    find_snapshot,
    list_snapshots,
    read_snapshot,
    save_snapshot,
)
from belljar.store.store import Objects, Store
from belljar.store.tree import Entry, Kind, encode_directory
from tests.contract.servers import fill, memory
from tests.contract.tree import TREE
from tests.store.writing import store_tree

HEAD = b"belljar snapshot 1\n"


def objects() -> Objects:
    return Objects(Store.memory())


def snapshot(some: Objects, label: str = "") -> bytes:
    server = memory()
    fill(server, TREE)
    variables = some.write([PIECE + b"a variable"])
    record = SnapshotRecord(
        created=1,
        label=label,
        trees=[store_tree(some, server), store_tree(some, memory(), b"/dev/shm")],
        variables=[Variables("python", variables)],
    )
    return save_snapshot(some, record)


def exported(some: Objects, digest: bytes) -> bytes:
    parts: list[bytes] = []
    write_bundle(some, digest, parts.append)
    return b"".join(parts)


def made(*contents: bytes, head: bytes = HEAD, end: bytes | None = None) -> bytes:
    """A bundle of these objects, whatever they are."""
    data = head
    for each in contents:
        (kept,) = compress([each])
        data += len(kept).to_bytes(4, "big") + digest_of(each) + kept
    data += bytes(4)
    return data + (hashlib.sha256(data).digest() if end is None else end)


def refused(data: bytes, match: str | None = None) -> None:
    some = objects()
    with pytest.raises(SnapshotError, match=match):
        read_bundle(io.BytesIO(data), some)
    assert list(some.backend.digests()) == []
    assert some.backend.list() == {}


def test_what_is_exported_is_imported(tmp_path: Path) -> None:
    some, other = objects(), objects()
    digest = snapshot(some, "built")
    some.write([PIECE + b"of nobody"])
    export_bundle(some, digest, tmp_path / "b")
    assert import_bundle(other, tmp_path / "b") == digest
    assert set(other.backend.digests()) == set(some.backend.digests()) - {digest_of(PIECE + b"of nobody")}
    assert other.backend.list() == some.backend.list()
    assert read_snapshot(other, digest) == read_snapshot(some, digest)
    assert list(check(other.backend)) == []
    assert import_bundle(other, tmp_path / "b") == digest
    assert len(list_snapshots(other)) == 1
    assert exported(other, digest) == (tmp_path / "b").read_bytes()
    assert (tmp_path / "b").stat().st_mode & 0o077 == 0
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_an_imported_snapshot_takes_no_label_away() -> None:
    some, other = objects(), objects()
    data = exported(some, snapshot(some, "prod"))
    (root,) = other.write([encode_directory([])])
    mine = save_snapshot(other, SnapshotRecord(created=2, label="prod", trees=[Tree(b"/", "root", root)]))
    read_bundle(io.BytesIO(data), other)
    assert find_snapshot(other.backend, "prod") == mine
    assert len(list_snapshots(other)) == 2


def test_every_damage_is_found() -> None:
    some = objects()
    data = exported(some, snapshot(some))
    random.seed(1)
    for position in [*range(60), *random.sample(range(len(data)), 200), *range(len(data) - 40, len(data))]:
        refused(data[:position] + bytes([data[position] ^ 0x41]) + data[position + 1 :])
    for end in [0, 5, len(HEAD), *random.sample(range(len(data)), 50), len(data) - 1]:
        refused(data[:end])
    refused(data + b"x", "end")


FILE = PIECE + b"text"
EMPTY = encode_directory([])


def root(*entries: Entry) -> bytes:
    return encode_directory(entries)


def record(directory: bytes, **fields: object) -> bytes:
    trees = [Tree(b"/", "root", digest_of(directory))]
    return encode_snapshot(SnapshotRecord(created=1, trees=trees, **fields))  # type: ignore[arg-type]


def file(name: bytes = b"f", piece: bytes = FILE, size: int | None = None) -> Entry:
    length = len(piece) - 1 if size is None else size
    return Entry(name, Kind.FILE, 0o644, size=length, parts=[digest_of(piece)])


def directory(name: bytes, inner: bytes) -> Entry:
    return Entry(name, Kind.DIRECTORY, 0o755, parts=[digest_of(inner)])


def test_the_smallest_bundle() -> None:
    assert len(check_bundle(io.BytesIO(made(record(EMPTY), EMPTY)))) == 2


def raw(*entries: Entry) -> bytes:
    """A directory object that no encoder of ours makes."""
    from msgspec import msgpack

    return b"d" + msgpack.encode(list(entries))


EVIL = {
    "empty": b"",
    "nothing in it": HEAD,
    "no record": made(),
    "another format": made(record(EMPTY), EMPTY, head=b"belljar snapshot 2\n"),
    "another program": b"PK\3\4" + bytes(100),
    "no snapshot first": made(EMPTY, record(EMPTY)),
    "an image": made(encode_snapshot(SnapshotRecord(created=1, trees=[Tree(b"/", "root", digest_of(EMPTY))]), "image")),
    "a record that is none": made(encode_record(Record("snapshot", [digest_of(EMPTY)], b"\xc1")), EMPTY),
    "another version": made(encode_record(Record("snapshot", [], b"\x92\x63\x01"))),
    "something missing": made(record(root(file())), root(file())),
    "something twice": made(record(EMPTY), EMPTY, EMPTY),
    "something for nobody": made(record(EMPTY), EMPTY, FILE),
    "a piece before its directory": made(record(root(file())), FILE, root(file())),
    "a piece as the root": made(record(FILE), FILE),
    "a directory as a piece": made(record(root(file(b"f", EMPTY))), root(file(b"f", EMPTY)), EMPTY),
    "a piece that is too short": made(record(root(file(size=5))), root(file(size=5)), FILE),
    "a piece of two lengths": made(record(root(file(), file(b"g", size=3))), root(file(), file(b"g", size=3)), FILE),
    "a file that is a directory, too": made(record(root(file(b"a", EMPTY), directory(b"b", EMPTY))), EMPTY),
    "..": made(record(raw(file(b".."))), raw(file(b"..")), FILE),
    "a path for a name": made(record(raw(file(b"a/b"))), raw(file(b"a/b")), FILE),
    "an absolute name": made(record(raw(file(b"/etc"))), raw(file(b"/etc")), FILE),
    "one name twice": made(record(raw(file(), file())), raw(file(), file()), FILE),
    "no name": made(record(raw(file(b""))), raw(file(b"")), FILE),
    "a NUL": made(record(raw(file(b"a\0b"))), raw(file(b"a\0b")), FILE),
    "a long name": made(record(raw(file(b"n" * 256))), raw(file(b"n" * 256)), FILE),
    "variables that are missing": made(record(EMPTY, variables=[Variables("python", [digest_of(FILE)])]), EMPTY),
    "variables that are a directory": made(record(EMPTY, variables=[Variables("python", [digest_of(EMPTY)])]), EMPTY),
    "another end": made(record(EMPTY), EMPTY, end=bytes(32)),
    "no end": made(record(EMPTY), EMPTY)[:-36],
}


@pytest.mark.parametrize("name", EVIL)
def test_hostile_bundles(name: str) -> None:
    refused(EVIL[name])


def test_a_wrong_digest() -> None:
    data = made(record(root(file())), root(file()), FILE)
    refused(data.replace(b"\0ptext", b"\0pTEXT"), "damaged")


def test_an_object_that_says_it_is_huge() -> None:
    refused(HEAD + (OBJECT_MAX + 2).to_bytes(4, "big") + bytes(100), "too large")


def nested(levels: int, width: int) -> bytes:
    """Each directory has the next one so many times: few objects, and any number of files."""
    chain = [root(file())]
    for _ in range(levels):
        chain.append(root(*(directory(b"%d" % n, chain[-1]) for n in range(width))))
    return made(record(chain[-1]), *reversed(chain), FILE)


def test_bombs(monkeypatch: pytest.MonkeyPatch) -> None:
    check_bundle(io.BytesIO(nested(5, 3)))
    refused(nested(60, 2), "more than")
    refused(nested(2500, 1), "levels deep")
    zeros = [PIECE + bytes([n]) * (4 << 20) for n in range(20)]
    bomb = root(*(file(b"%02d" % n, each) for n, each in enumerate(zeros)))
    assert len(made(record(bomb), bomb, *zeros)) < 20_000
    refused(made(record(bomb), bomb, *zeros), "bomb")
    with pytest.raises(SnapshotError, match="more than 1000 bytes"):
        check_bundle(io.BytesIO(made(record(bomb), bomb, *zeros)), bytes_max=1000)
    monkeypatch.setattr(bundle, "FILES_MAX", 100)
    many = root(*(file(b"%03d" % n) for n in range(101)))
    refused(made(record(many), many, FILE), "more than 100 files")


def test_a_bundle_that_changes_while_it_is_read() -> None:
    one, two = (made(record(root(file(b"f", p))), root(file(b"f", p)), p) for p in (FILE, PIECE + b"TEXT"))

    class Changing(io.BytesIO):
        def seek(self, offset: int, whence: int = 0) -> int:
            self.getbuffer()[:] = two
            return super().seek(offset, whence)

    some = objects()
    with pytest.raises(SnapshotError, match="changed"):
        read_bundle(Changing(one), some)
    assert some.backend.list() == {}


def test_a_bundle_that_lacks_something_the_second_time() -> None:
    whole = record(root(file(b"f", FILE)))
    one, less = made(whole, root(file(b"f", FILE)), FILE), made(whole, FILE)

    class Shrinking(io.BytesIO):
        def seek(self, offset: int, whence: int = 0) -> int:
            super().seek(0)
            self.truncate()
            self.write(less)
            return super().seek(offset, whence)

    some = objects()
    with pytest.raises(SnapshotError, match="changed"):
        read_bundle(Shrinking(one), some)
    assert some.backend.list() == {}


def test_files_that_can_not_be(tmp_path: Path) -> None:
    some = objects()
    with pytest.raises(SnapshotError, match="can't read"):
        import_bundle(some, tmp_path / "no")
    with pytest.raises(SnapshotError, match="can't write"):
        export_bundle(some, snapshot(some), tmp_path / "no" / "no")
    with pytest.raises(SnapshotError):
        export_bundle(some, bytes(32), tmp_path / "b")
    assert list(tmp_path.iterdir()) == []
