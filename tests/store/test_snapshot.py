"""Records of snapshots: one way to write each, and refs that find, list and remove them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import msgpack
from msgspec.structs import astuple, replace

from belljar.abi.container_state import ContainerState
from belljar.abi.errors import SnapshotError
from belljar.store.collect import check, collect
from belljar.store.errors import RefConflict
from belljar.store.objects import Record, digest_of, encode_record
from belljar.store.snapshot import (
    ContainerRecord,
    SnapshotRecord,
    Tree,
    Variables,
    decode_snapshot,
    encode_snapshot,
    find_snapshot,
    list_snapshots,
    read_snapshot,
    ref_of,
    remove_snapshot,
    save_snapshot,
)
from belljar.store.store import Objects, Store
from tests.store.contract import directory, piece

ROOT = digest_of(directory(f="text"))
BOX = ContainerState(
    id="0123456789ab",
    name="box",
    image=b"base",
    image_env=[(b"PATH", b"/bin")],
    image_command=[b"bash"],
    argv=[b"echo", b"\xff"],
    env=[(b"A", b"b")],
    volumes=[(b"v", b"/v", True)],
    ports=[(8080, 80)],
    status=(3, 0),
    created=5,
    ended=6,
)


def contained(*changes: dict[str, Any], **files: Any) -> dict[str, Any]:
    """Containers that differ from one that makes sense."""
    tree = replace(Tree(b"/", "root", ROOT), **files)
    return {"containers": [ContainerRecord(replace(BOX, **change), tree) for change in changes]}


FULL = SnapshotRecord(
    created=1,
    label="a label",
    parent=b"p" * 32,
    trees=[Tree(b"/", "root", ROOT, hard_links=[(1, 2), (7, 3)]), Tree(b"/dev/shm", "memory", ROOT, mode=0o1777)],
    env=[(b"A", b"\xff"), (b"B", b"")],
    cwd=b"/w",
    user="me",
    hostname="box",
    limits=[("cpu_seconds", 1.5), ("steps", 10)],
    variables=[Variables("python", [digest_of(piece("x"))])],
    lost=["/tmp/x (deleted)"],
    size=4,
    mounts=[b"/repo"],
    tools=["look-up", "search"],
    checkpoint=2.5,
    **contained({}, {"id": "0" * 12, "name": "other", "status": None}),
)


def objects() -> Objects:
    made = Objects(Store.memory())
    made.write([directory(f="text"), piece("text"), piece("x")])
    return made


def snapshot(created: int = 1, label: str = "", parent: bytes = b"") -> SnapshotRecord:
    return SnapshotRecord(created=created, label=label, parent=parent, trees=[Tree(b"/", "root", ROOT)])


def test_what_is_written_is_read() -> None:
    assert decode_snapshot(encode_snapshot(FULL)) == FULL
    image = replace(FULL, config=b"recipe")
    assert decode_snapshot(encode_snapshot(image, "image"), "image") == image


def test_one_that_was_written_before_the_last_fields_were_added_is_read() -> None:
    whole = snapshot()
    body = msgpack.encode(astuple(whole)[:-3])
    assert decode_snapshot(encode_record(Record("snapshot", [ROOT], body))) == whole


def test_one_without_containers_is_read_by_earlier_versions() -> None:
    whole = snapshot()
    assert encode_snapshot(whole) == encode_record(Record("snapshot", [ROOT], msgpack.encode(astuple(whole)[:-1])))


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"created": -1},
        {"size": 1 << 63},
        {"parent": b"short"},
        {"trees": []},
        {"trees": [Tree(b"/a", "memory", ROOT)]},
        {"trees": [Tree(b"/", "root", ROOT), Tree(b"/", "root", ROOT)]},
        {"trees": [Tree(b"/", "root", ROOT), Tree(b"/b", "memory", ROOT), Tree(b"/a", "memory", ROOT)]},
        {"trees": [Tree(b"/", "root", ROOT), Tree(b"/a/../b", "memory", ROOT)]},
        {"trees": [Tree(b"/", "root", ROOT), Tree(b"a", "memory", ROOT)]},
        {"trees": [Tree(b"/", "root", b"short")]},
        {"trees": [Tree(b"/", "root", ROOT, mode=0o10000)]},
        {"trees": [Tree(b"/", "root", ROOT, uid=1 << 32)]},
        {"trees": [Tree(b"/", "root", ROOT, hard_links=[(2, 1), (1, 1)])]},
        {"env": [(b"B", b""), (b"A", b"")]},
        {"env": [(b"A=", b"")]},
        {"env": [(b"A", b"\0")]},
        {"cwd": b"relative"},
        {"mounts": [b"/a/.."]},
        {"variables": [Variables("python", [b"short"])]},
        {"variables": [Variables("python", []), Variables("python", [])]},
        {"tools": ["b", "a"]},
        {"tools": ["../a"]},
        {"checkpoint": float("nan")},
        {"checkpoint": 0.0},
        contained({}, {}),
        contained({}, {"name": "other"}),
        contained({}, {"id": "0" * 12}),
        contained(*({"id": f"{n:012}", "name": f"n{n}"} for n in range(101))),
        contained({}, kind="memory", path=b"/m"),
        contained({}, kind="overlay", path=b"/repo"),
        contained({}, path=b"/a"),
        contained({}, digest=b"short"),
        contained({}, uid=-1),
        contained({"name": "../../etc/passwd"}),
        contained({"name": "a\n"}),
        contained({"name": ""}),
        contained({"name": "x" * 64}),
        contained({"id": "0123"}),
        contained({"id": "0123456789a\n"}),
        contained({"argv": [], "image_command": []}),
        contained({"argv": [b"a\0b"]}),
        contained({"argv": [b"x" * 100_000]}),
        contained({"argv": [b""] * 100_000}),
        contained({"limit": "x" * 100_000}),
        contained({"env": [(b"", b"")]}),
        contained({"image_env": [(b"A=", b"")]}),
        contained({"cwd": b"relative"}),
        contained({"image_cwd": b""}),
        contained({"volumes": [(b"", b"/v", False)]}),
        contained({"volumes": [(b"v", b"v", False)]}),
        contained({"ports": [(0, 80)]}),
        contained({"ports": [(80, 65536)]}),
        contained({"memory": -1}),
        contained({"pids": 1 << 63}),
        contained({"status": (256, 0)}),
        contained({"status": (0, 65)}),
        contained({"created": -1}),
    ],
)
def test_what_makes_no_sense_is_neither_written_nor_read(change: dict[str, Any]) -> None:
    wrong = replace(FULL, **change)
    with pytest.raises(SnapshotError):
        encode_snapshot(wrong)
    links = wrong.roots + [part for each in wrong.variables for part in each.pieces]
    with pytest.raises(SnapshotError):
        decode_snapshot(encode_record(Record("snapshot", links, msgpack.encode(wrong))))


def test_objects_that_are_no_snapshots() -> None:
    body = msgpack.encode(FULL)
    links = [ROOT, ROOT, ROOT, ROOT, digest_of(piece("x"))]
    assert decode_snapshot(encode_record(Record("snapshot", links, body))) == FULL
    for data in (
        b"",
        piece("x"),
        directory(f="x"),
        encode_snapshot(FULL, "image"),
        encode_record(Record("snapshot", links[1:], body)),
        encode_record(Record("snapshot", links, body + b"\0")),
        encode_record(Record("snapshot", links, b"\xc1")),
    ):
        with pytest.raises(SnapshotError):
            decode_snapshot(data)
    later = msgpack.encode([99, "something else"])
    with pytest.raises(SnapshotError, match="version 99"):
        decode_snapshot(encode_record(Record("snapshot", [], later)))


def test_find() -> None:
    some = objects()
    store = some.backend
    one, two = save_snapshot(some, snapshot(1, "built")), save_snapshot(some, snapshot(2, "built"))
    store.set("sandbox/lane", one, None)
    for text, found in {
        "built": two,
        "label/built": two,
        "lane": one,
        "sandbox/lane": one,
        f"snapshot/{one.hex()}": one,
        ref_of(one): one,
        ref_of(one)[:20]: one,
        one.hex(): one,
        one.hex()[:8]: one,
        one.hex()[:9].upper(): one,
    }.items():
        assert find_snapshot(store, text) == found, text
    for text in ("", "other", one.hex()[:7], "0" * 12, "sha256:", "sha256:xyz", "snapshot/"):
        with pytest.raises(SnapshotError):
            find_snapshot(store, text)
    # A full digest may be of a snapshot that no ref keeps: whoever reads it finds out.
    assert find_snapshot(store, ref_of(ROOT)) == ROOT
    with pytest.raises(SnapshotError, match="no snapshot"):
        read_snapshot(some, ROOT)
    with pytest.raises(SnapshotError, match="has no snapshot"):
        read_snapshot(some, b"x" * 32)
    assert read_snapshot(some, one) == snapshot(1, "built")


@pytest.mark.parametrize("label", ["sha256:12", "x\ny", "x" * 130])
def test_labels_that_can_not_be(label: str) -> None:
    with pytest.raises(SnapshotError):
        save_snapshot(objects(), snapshot(label=label))


def test_a_label_falls_back_to_the_older_snapshot() -> None:
    some = objects()
    store = some.backend
    one, two = save_snapshot(some, snapshot(1, "built")), save_snapshot(some, snapshot(2, "built"))
    three = save_snapshot(some, snapshot(3, parent=two))
    assert [(digest, refs) for digest, (_, refs) in list_snapshots(some).items()] == [
        (one, []),
        (two, ["label/built"]),
        (three, []),
    ]
    remove_snapshot(some, two)
    assert find_snapshot(store, "built") == one
    remove_snapshot(some, one)
    assert list(list_snapshots(some)) == [three]
    assert list(store.list()) == [f"snapshot/{three.hex()}"]
    with pytest.raises(SnapshotError):
        remove_snapshot(some, one)
    # The parent is gone; what the child needs is not.
    collect(store, 0.0)
    collect(store, 1e9)
    assert list(check(store)) == []
    with pytest.raises(SnapshotError):
        read_snapshot(some, two)


def test_a_label_that_moves_while_its_snapshot_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    some = objects()
    store = some.backend
    one, two = save_snapshot(some, snapshot(1, "built")), save_snapshot(some, snapshot(2))
    delete = store.delete

    def moved_just_before(name: str, expected: bytes) -> None:
        if name == "label/built":
            store.set(name, two, one)
        delete(name, expected)

    monkeypatch.setattr(store, "delete", moved_just_before)
    with pytest.raises(RefConflict):
        remove_snapshot(some, one)
    assert list(list_snapshots(some)) == [one, two]
    assert find_snapshot(store, "built") == two


def test_one_that_can_not_be_read_hurts_no_other() -> None:
    some = objects()
    store = some.backend
    one, two = save_snapshot(some, snapshot(1, "one")), save_snapshot(some, snapshot(2, "two"))
    store.write({one: b"damaged"})
    assert [(digest, record is None) for digest, (record, _) in list_snapshots(some).items()] == [
        (one, True),
        (two, False),
    ]
    remove_snapshot(some, find_snapshot(store, "one"))
    assert list(list_snapshots(some)) == [two]
