"""What holds for every store: `check_contract` is to be run on an empty one."""

from __future__ import annotations

import threading

import pytest

from belljar.store.collect import check, collect
from belljar.store.errors import ObjectMissing, RefConflict, StoreError
from belljar.store.objects import PIECE, Record, digest_of, encode_record
from belljar.store.store import Objects, Store
from belljar.store.tree import Entry, Kind, encode_directory

NOTHING = digest_of(b"nothing")


def piece(text: str) -> bytes:
    return PIECE + text.encode()


def directory(**files: str) -> bytes:
    return encode_directory(
        Entry(name.encode(), Kind.FILE, 0o644, size=len(text), parts=[digest_of(piece(text))])
        for name, text in files.items()
    )


def save(store: Store, ref: str, **files: str) -> bytes:
    """Keep a directory under a ref, whatever it named before."""
    objects = Objects(store)
    objects.write([piece(text) for text in files.values()])
    (root,) = objects.write([directory(**files)])
    store.set(ref, root, store.get(ref))
    return root


def check_contract(store: Store) -> None:
    for part in (objects_come_back, refs_compare_and_swap, one_of_many_wins, garbage_goes_in_two_steps, check_is_clean):
        part(store)


def objects_come_back(store: Store) -> None:
    objects = Objects(store)
    data = [piece(""), piece("a" * 100_000), bytes([*PIECE, *range(256)]), encode_record(Record("x", [NOTHING], b"y"))]
    digests = objects.write(data)
    assert digests == [digest_of(each) for each in data]
    assert objects.read([*digests, digests[0]]) == [*data, data[0]]
    assert store.missing([*digests, NOTHING]) == {NOTHING}
    assert objects.write([]) == []
    assert objects.read([]) == []
    with pytest.raises(ObjectMissing):
        objects.read([digests[0], NOTHING])
    many = [piece(str(number)) for number in range(2000)]
    digests = objects.write(many)
    assert objects.read(digests[::-1]) == many[::-1]
    assert set(digests) <= set(store.digests())


def refs_compare_and_swap(store: Store) -> None:
    one, two = Objects(store).write([piece("one"), piece("two")])
    assert store.get("a/b") is None
    store.set("a/b", one, None)
    for wrong in (None, two):
        with pytest.raises(RefConflict):
            store.set("a/b", two, wrong)
    assert store.get("a/b") == one
    for _ in range(5):
        store.set("a/b", two, one)
        store.set("a/b", one, two)
    store.set("ä b", two, None)
    assert store.list() == {"a/b": one, "ä b": two}
    assert store.list("a/") == {"a/b": one}
    with pytest.raises(RefConflict):
        store.delete("a/b", two)
    store.delete("a/b", one)
    assert store.get("a/b") is None
    with pytest.raises(RefConflict):
        store.delete("a/b", one)
    store.set("a/b", two, None)
    assert store.get("a/b") == two
    for name in list(store.list()):
        store.delete(name, two)
    assert store.list() == {}
    for bad in ("", "a\nb", "x" * 121):
        with pytest.raises(StoreError, match="can't name a ref"):
            store.set(bad, one, None)


def one_of_many_wins(store: Store) -> None:
    """Each thread adds 1 to a number, again and again: no update is lost."""
    objects = Objects(store)
    store.set("count", objects.write([piece("0")])[0], None)

    def add() -> None:
        done = 0
        while done < 10:
            current = store.get("count")
            assert current is not None
            number = int(objects.read([current])[0][1:])
            try:
                store.set("count", objects.write([piece(str(number + 1))])[0], current)
            except RefConflict:
                continue
            done += 1

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    last = store.get("count")
    assert last is not None
    assert objects.read([last]) == [piece("40")]
    store.delete("count", last)


def garbage_goes_in_two_steps(store: Store) -> None:
    objects = Objects(store)
    root = save(store, "kept", a="needed", b="needed too")
    gone = save(store, "gone", a="needed", c="garbage")
    store.delete("gone", gone)
    collect(store, now=1000.0, grace=100.0)
    assert objects.read([gone]) == [directory(a="needed", c="garbage")], "condemned, but not removed yet"
    assert store.missing([gone, root]) == {gone}
    collect(store, now=1050.0, grace=100.0)
    assert objects.read([gone])
    # Somebody writes it again, and so it is not garbage any more.
    save(store, "back", a="needed", c="garbage")
    collect(store, now=1200.0, grace=100.0)
    assert store.missing([gone]) == set()
    store.delete("back", gone)
    for now in (1300.0, 1500.0, 1700.0):
        collect(store, now=now, grace=100.0)
    with pytest.raises(ObjectMissing):
        objects.read([gone])
    assert objects.read([root, digest_of(piece("needed"))]) == [directory(a="needed", b="needed too"), piece("needed")]
    assert set(store.digests()) == {root, digest_of(piece("needed")), digest_of(piece("needed too"))}
    assert list(check(store)) == []


def check_is_clean(store: Store) -> None:
    objects = Objects(store)
    inner = directory(f="text")
    objects.write([piece("text"), inner])
    outer = encode_directory([Entry(b"d", Kind.DIRECTORY, 0o755, parts=[digest_of(inner)])])
    (root,) = objects.write([outer])
    store.set("tree", root, None)
    assert list(check(store)) == []
    # A ref to something that is not there: who reads is told, and what is not known is not collected.
    (hollow,) = objects.write([directory(lost="lost")])
    store.set("hollow", hollow, None)
    found = [(damage.ref, damage.path, damage.digest, damage.what) for damage in check(store)]
    assert found == [("hollow", "/lost", digest_of(piece("lost")), "missing")]
    with pytest.raises(ObjectMissing):
        collect(store, now=9e9, grace=0.0)
    store.delete("hollow", hollow)
    assert list(check(store)) == []
