"""State as a way to harm: a lost worker that answers for snapshots, files made to be costly, snapshots of others."""

from __future__ import annotations

import asyncio
import gc
import io
import sqlite3
import tarfile
import threading
import time
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from belljar import AsyncSandbox, ImageError, Limits, Mount, Sandbox, SandboxError, Snapshot, SnapshotError, Store
from belljar.abi.capture import Begun, CapturedContainer, CapturedTree, Record
from belljar.abi.container_state import ContainerState
from belljar.abi.flags import S_IFDIR, S_IFIFO, S_IFLNK, S_IFREG
from belljar.api import state as states
from belljar.api.captured_tree import TreeTable
from belljar.api.offers import Offers
from belljar.api.operations import Ask, Work
from belljar.api.settings import Settings
from belljar.api.state import State
from belljar.cli.__main__ import main
from belljar.image import tree as image_tree
from belljar.image.layer import Meter, apply_layer
from belljar.image.tree import FileTree
from belljar.kernel.fs.hostdir_host import HostDirServer
from belljar.kernel.fs.remote_export import Export
from belljar.store import tree_diff
from belljar.store.collect import check
from belljar.store.errors import StoreError
from belljar.store.memory_host import MemoryStore
from belljar.store.objects import PIECE, Digest, digest_of
from belljar.store.snapshot import ContainerRecord, SnapshotRecord, Tree, Variables, ref_of, save_snapshot
from belljar.store.store import Objects
from belljar.store.stored_tree import StoredTree
from belljar.store.tree import Entry, Kind, decode_directory, encode_directory

MB = 1 << 20
FILE, DIRECTORY, LINK = S_IFREG | 0o644, S_IFDIR | 0o755, S_IFLNK | 0o777
ROOT = CapturedTree(b"/", 1, 1)


def directory(number: int, children: dict[bytes, int] | None = None, **fields: Any) -> Record:
    children = children or {}
    return Record(1, number, DIRECTORY, 0, 0, 5, names=[*children], children=[*children.values()], **fields)


def file(number: int, **fields: Any) -> Record:
    return Record(1, number, FILE, 0, 0, 5, **fields)


class Lost:
    """A worker that answers the questions for a snapshot as it likes."""

    def __init__(
        self,
        page: Callable[[int], list[Record]],
        data: bytes = b"",
        begun: Begun | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.page = page
        self.data = data
        self.begun = begun or Begun(1, 10, [ROOT], [])
        self.limits = limits or Limits()
        self.asked = 0
        self.state = State()
        self.store = MemoryStore()
        self.offers = Offers(threading.RLock())

    def snapshot(self) -> states.Point:
        settings = Settings.check({"limits": self.limits})
        steps = states.take(self.state, settings, self.offers, self.store)
        answer: Any = None
        try:
            while True:
                step = steps.send(answer)
                if isinstance(step, Work):
                    answer = step.do()
                    continue
                assert isinstance(step, Ask)
                self.asked += 1
                match step.name:
                    case "capture":
                        answer = to_builtins(self.begun, builtin_types=(bytes,))
                    case "captured_records":
                        answer = to_builtins(self.page(step.arguments[1]), builtin_types=(bytes,))
                    case "captured_data":
                        answer = self.data
                    case _:
                        answer = None
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


def once(*records: Record) -> Callable[[int], list[Record]]:
    return lambda start: list(records[start:])


def peak(act: Callable[[], object]) -> int:
    """Bytes that it took at most."""
    gc.collect()
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


SMALL = Limits(files=1000, file_bytes=8 * MB)


def endless(make: Callable[[int], Record]) -> Callable[[int], list[Record]]:
    """One more record whenever it is asked."""
    return lambda start: [directory(1)] if start == 0 else [make(start + 1)]


ENDLESS: dict[str, Lost] = {
    "pages": Lost(endless(lambda number: file(number, data=b"")), limits=SMALL),
    "names": Lost(endless(lambda number: directory(number, {b"%d" % n: 1 for n in range(5000)})), limits=SMALL),
    "long targets": Lost(endless(lambda number: Record(1, number, LINK, 0, 0, 5, target=bytes(12 * MB)))),
    "long names": Lost(endless(lambda number: directory(number, {bytes(12 * MB): 1}))),
    "small files": Lost(endless(lambda number: file(number, size=60_000, data=b"x" * 60_000)), limits=SMALL),
    "empty pieces": Lost(once(directory(1, {b"f": 2}), file(2, size=1 << 41, pieces=[0, 1 << 19]))),
    "ranges": Lost(endless(lambda number: file(number, size=5, pieces=[0, 1] * 80_000)), limits=SMALL),
    "the same piece": Lost(once(directory(1, {b"f": 2}), file(2, size=9 * MB, pieces=[0, 1] * 9)), b"x" * MB),
    "records of 2^63": Lost(once(directory(1, {b"f": 2}), file(2, size=(1 << 63) - 1, pieces=[0, 1 << 62]))),
    "a negative size": Lost(once(directory(1, {b"f": 2}), file(2, size=-(1 << 62), pieces=[0, 1]))),
    "holes": Lost(endless(lambda number: file(number, size=1 << 42))),
    "scattered bytes": Lost(once(directory(1, {b"f": 2}), file(2, size=1 << 40, pieces=[0, 1 << 18])), b"x"),
}


@pytest.mark.battery(sample=3)
@pytest.mark.parametrize("what", ENDLESS)
def test_a_worker_that_answers_for_ever_is_refused_within_bounds(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(states, "_PADDING_MAX", 64 * MB)
    lost = ENDLESS[what]

    def act() -> None:
        with pytest.raises(SnapshotError):
            lost.snapshot()

    assert peak(act) < 64 * MB
    assert lost.asked < 70_000
    assert list(check(lost.store)) == []
    assert lost.store.list() == {}


WRONG: dict[str, list[Record]] = {
    "a directory over a file of nothing": [directory(1, {b"a": 2}, lower=9), directory(2)],
    "a FIFO with contents": [directory(1, {b"a": 2}), Record(1, 2, S_IFIFO, 0, 0, 5, size=5, data=b"xxxxx")],
    "a file of another tree": [directory(1), replace(file(2), tree=2)],
    "names of a file": [directory(1, {b"a": 2}), file(2, data=b"", names=[b"x"], children=[2])],
    "contents of another size": [directory(1, {b"a": 2}), file(2, size=7, data=b"x")],
    "a time beyond": [directory(1, {b"a": 2}), replace(file(2, data=b""), mtime=1 << 63)],
}


@pytest.mark.parametrize("what", WRONG)
def test_answers_that_make_no_sense(what: str) -> None:
    lost = Lost(once(*WRONG[what]))
    with pytest.raises(SnapshotError, match="makes no sense"):
        lost.snapshot()
    lost.page = once(directory(1, {b"a": 2}), file(2, data=b""))
    assert lost.snapshot().record.trees


BEGUN: dict[str, Begun] = {
    "no tree": Begun(1, 10, [], []),
    "one path twice": Begun(1, 10, [ROOT, replace(ROOT, tree=2)], []),
    "over an export that was never given": Begun(1, 10, [replace(ROOT, over=5)], []),
    "over a huge number": Begun(1, 10, [replace(ROOT, over=1 << 62)], []),
    "another root": Begun(1, 10, [replace(ROOT, root=77)], []),
}


@pytest.mark.parametrize("what", BEGUN)
def test_beginnings_that_make_no_sense(what: str) -> None:
    with pytest.raises(SnapshotError):
        Lost(once(directory(1)), begun=BEGUN[what]).snapshot()


def test_the_owners_table_does_not_grow_from_snapshot_to_snapshot() -> None:
    """Each capture is within its bounds, and has other files than the one before."""
    lost = Lost(once(), limits=SMALL)
    names: dict[bytes, int] = {}
    with pytest.raises(SnapshotError, match="more files"):  # noqa: PT012 - how many it takes is not the matter
        for turn in range(20):
            first = 2 + turn * 2000
            new = range(first + 1, first + 2000)
            names |= {b"d%d" % turn: first}
            below = directory(first, {b"%d" % number: number for number in new})
            lost.page = once(directory(1, names), below, *(file(number, data=b"") for number in new))
            lost.snapshot()
    assert len(names) < 10


def test_nor_by_names_of_one_file() -> None:
    lost = Lost(once(), limits=SMALL)
    names: dict[bytes, int] = {b"f": 2}
    with pytest.raises(SnapshotError, match="more files"):  # noqa: PT012
        for turn in range(3, 23):
            names |= {b"d%d" % turn: turn}
            many = directory(turn, {b"%d" % number: 2 for number in range(2000)})
            lost.page = once(directory(1, names), many, file(2, data=b""))
            lost.snapshot()


# Files that are made to be costly.


def update(table: TreeTable, *records: Record) -> float:
    """Seconds of processor time that it takes this thread, without what the garbage of other tests takes."""
    gc.disable()
    try:
        began = time.thread_time()
        table.update([(record, []) for record in records], None, _nothing)
        return time.thread_time() - began
    finally:
        gc.enable()


def _nothing(_digest: Digest) -> list[Any]:
    raise AssertionError


def many_pairs(count: int) -> list[Record]:
    """So many files with two names each, in one directory."""
    names = {b"%s%d" % (kind, number): number for number in range(2, count + 2) for kind in (b"a", b"b")}
    return [directory(1, names), *(file(number) for number in range(2, count + 2))]


def many_names(count: int) -> list[Record]:
    """One file with a name in each of so many directories."""
    number = count + 2
    below = [directory(each, {b"f": number}) for each in range(2, number)]
    return [directory(1, {b"%d" % each: each for each in range(2, number)}), *below, file(number)]


def many_directories(count: int) -> list[Record]:
    return [directory(1, {b"%d" % each: each for each in range(2, count + 2)}), *map(directory, range(2, count + 2))]


@pytest.mark.parametrize("make", [many_pairs, many_names, many_directories])
def test_hard_links_and_wide_directories_cost_what_they_are(make: Callable[[int], list[Record]]) -> None:
    """Eight times as many take about eight times as long, to come and to go; sixty-four if each looks at all."""
    few, many = TreeTable(1, b"", {}), TreeTable(1, b"", {})
    base = update(few, *make(2000)) + update(few, directory(1))
    assert update(many, *make(16_000)) + update(many, directory(1)) < 24 * base + 0.2
    assert many.count == 1


def test_link_numbers_are_those_of_the_tree_whatever_the_order() -> None:
    one, two = TreeTable(1, b"", {}), TreeTable(1, b"", {})
    update(one, directory(1, {b"d": 2, b"x": 5}), directory(2, {b"y": 5, b"z": 5}), file(5))
    update(two, file(7), directory(1, {b"x": 7, b"d": 3}), directory(3))
    update(two, directory(3, {b"z": 7, b"y": 7}), file(7))
    assert one.root == two.root
    assert one.hard_links() == two.hard_links()
    assert [count for _, count in one.hard_links()] == [3]


# Cancellation.


class Slow(MemoryStore):
    """Waits at the n-th call that changes it or asks what is missing."""

    def __init__(self) -> None:
        super().__init__()
        self.left = -1
        self.waits, self.go = threading.Event(), threading.Event()

    def _step(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.waits.set()
            self.go.wait(20)

    def missing(self, digests: Any) -> Any:
        self._step()
        return super().missing(digests)

    def write(self, objects: Any) -> None:
        self._step()
        super().write(objects)

    def set(self, name: str, digest: Digest, expected: Digest | None) -> None:
        self._step()
        super().set(name, digest, expected)


def test_a_snapshot_that_is_cancelled_at_any_step_spoils_nothing() -> None:
    """What its thread does later reaches neither the next snapshot nor the checkpoint's name."""

    async def main() -> None:
        store = Slow()
        async with AsyncSandbox(store=store, name="agent", checkpoint=3600.0) as sandbox:
            held: list[BaseException] = []  # the traceback keeps the frames of what was cancelled
            step, cancelled = 0, True
            while cancelled:
                step += 1
                await sandbox.exec(f"echo {step} > f{step}; echo {step} > same; ln -f same l{step}")
                store.waits.clear()
                store.go.clear()
                store.left = step
                task = asyncio.ensure_future(sandbox._keep())
                while not (store.waits.is_set() or task.done()):
                    await asyncio.sleep(0.005)
                cancelled = not task.done()
                task.cancel()
                try:
                    await task
                except asyncio.CancelledError as error:
                    held.append(error)
                store.left = -1
                await sandbox.exec("rm -f f0; echo more >> same")
                if step % 2:
                    store.go.set()
                await sandbox._keep()
                store.go.set()
                await asyncio.sleep(0.02)
                await sandbox.exec("echo last > last")
                await sandbox._keep()
                expected = (await sandbox.exec("grep -r . . | sort; stat -c %h same")).stdout
                point = await sandbox.snapshot()
                async with await AsyncSandbox.restore(point) as restored:
                    assert (await restored.exec("grep -r . . | sort; stat -c %h same")).stdout == expected
            assert step > 4
            assert list(check(store)) == []

    asyncio.run(main())


def test_a_cancelled_snapshot_leaves_nothing_in_the_worker() -> None:
    async def main() -> None:
        store = Slow()
        async with AsyncSandbox(store=store) as sandbox:
            await sandbox.exec("head -c 40M /dev/urandom > big")
            store.left = 2
            task = asyncio.ensure_future(sandbox.snapshot())
            await asyncio.to_thread(store.waits.wait, 20)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            store.go.set()
            answer = sandbox._link.conversation.call("captured_records", 1, 0)
            sandbox._link.send(answer[1])
            await sandbox._link.expect(lambda: answer[0].done)
            assert "has ended" in str(answer[0].error)

    asyncio.run(main())


def test_a_worker_that_is_killed_in_the_middle_is_a_typed_error() -> None:
    store = Store.memory()
    for step in range(1, 8):
        with Sandbox() as sandbox:
            sandbox.exec("head -c 9M /dev/urandom > big; mkdir d; echo x > d/f")
            call, left = sandbox._link.conversation.call, [step]

            def counted(name: str, *arguments: Any, call: Any = call, left: Any = left, dying: Any = sandbox) -> Any:
                left[0] -= 1
                if not left[0]:
                    dying._link.worker.kill()
                return call(name, *arguments)

            sandbox._link.conversation.call = counted  # type: ignore[method-assign,assignment]
            try:
                sandbox.snapshot(store=store)
            except SandboxError:
                assert left[0] <= 0
            else:
                assert left[0] > 0
    assert list(check(store)) == []


BOX = ContainerState(id="0" * 12, name="box", image=b"base", argv=[b"true"])


def captured(*files: CapturedTree, **fields: Any) -> Begun:
    """A capture with containers that have these files."""
    found = [CapturedContainer(replace(BOX, **fields), each) for each in files]
    return Begun(1, 10, [ROOT], [], found)


CONTAINED: dict[str, Begun] = {
    "a name that is a path": captured(CapturedTree(b"/", 2, 1), name="../x"),
    "an id that is none": captured(CapturedTree(b"/", 2, 1), id="\x1b[2J"),
    "two of one name": captured(CapturedTree(b"/", 2, 1), CapturedTree(b"/", 2, 1)),
    "very many": captured(*[CapturedTree(b"/", 2, 1)] * 101),
    "no files": captured(CapturedTree(b"/", 3, 1)),
    "another root": captured(CapturedTree(b"/", 2, 9)),
    "a place": captured(CapturedTree(b"/m", 2, 1)),
    "an export that is none": captured(CapturedTree(b"/", 2, 1, 5)),
    "a tree of the owner's": captured(CapturedTree(b"/", 2, 1, 0)),
    "a tree of the owner's elsewhere": captured(CapturedTree(b"/m", 2, 1, 0)),
    "texts without end": captured(CapturedTree(b"/", 2, 1), argv=[b"x" * (20 * MB)]),
}


@pytest.mark.parametrize("what", CONTAINED)
def test_containers_of_a_lost_worker_that_make_no_sense(what: str, tmp_path: Path) -> None:
    lost = Lost(once(directory(1), replace(directory(1), tree=2)), begun=CONTAINED[what])
    with closing(HostDirServer(str(tmp_path))) as server:
        lost.offers.export(server, False)
        with pytest.raises(SnapshotError) as caught:
            lost.snapshot()
    assert str(caught.value).isprintable()
    assert lost.store.list() == {}


# Snapshots and images that somebody else made.


def kept(store: Store, **fields: Any) -> str:
    """A snapshot with an empty root and these fields; gives its ref."""
    objects = Objects(store)
    (root,) = objects.write([encode_directory([])])
    trees = [Tree(b"/", "root", root), *fields.pop("trees", [])]
    return ref_of(save_snapshot(objects, SnapshotRecord(created=1, trees=trees, **fields)))


ODD: dict[str, dict[str, Any]] = {
    "user": {"user": "no such \x1b[2J"},
    "hostname": {"hostname": "x" * 5000 + "\n"},
    "a limit": {"limits": [("files", -5)]},
    "a limit without end": {"limits": [("wall_seconds", 1e300)]},
    "an unknown limit": {"limits": [("\x1b[2J", 1)]},
    "a mount": {"mounts": [b"/\x1b[2J"]},
    "variables": {"variables": [Variables("python", [digest_of(encode_directory([]))])]},
    "no variables": {"variables": [Variables("javascript", [b"x" * 32])]},
}


@pytest.mark.parametrize("what", ["no tree", "a piece of a file"])
def test_a_container_whose_files_are_none(what: str) -> None:
    store = Store.memory()
    (digest,) = Objects(store).write([PIECE + b"x"]) if what != "no tree" else [b"x" * 32]
    ref = kept(store, containers=[ContainerRecord(BOX, Tree(b"/", "root", digest))])
    with pytest.raises(SnapshotError, match="the files of the snapshot's containers can't be read"):
        Sandbox.restore(ref, store=store).close()


def test_a_container_of_others_is_bound_as_any_is() -> None:
    """Its options are strange, its files are whatever they are: it can be looked at, started in vain, and removed."""
    store = Store.memory()
    (tree,) = Objects(store).write(
        [encode_directory([Entry(b"bin", Kind.FILE), Entry(b"etc", Kind.SYMLINK, target=b"/")])]
    )
    strange = {
        "image": b"\x1b[2J\n", "hostname": b"h" * 5000, "user": b"\xff:x", "memory": 1, "pids": 1 << 62,
        "cwd": b"/../..",
        "volumes": [(b"/", b"/", False), (b"..", b"/../../w", False)], "created": (1 << 63) - 1, "limit": "\x1b[2J",
        "image_digest": "sha256:" + "f" * 64,
    }  # fmt: skip
    each = [
        replace(BOX, id=f"{at:012}", name=name, **{name: value}) for at, (name, value) in enumerate(strange.items())
    ]
    files = Tree(b"/", "root", tree, hard_links=[(1, 1 << 31)])
    with Sandbox(store=store) as plain:
        record = plain.snapshot().record
    whole = replace(record, containers=[ContainerRecord(state, files) for state in each])
    with Sandbox.restore(ref_of(save_snapshot(Objects(store), whole)), store=store) as sandbox:
        assert len(sandbox.containers.list()) == len(strange)
        for name in strange:
            result = sandbox.exec(f"sudo docker start {name}; sudo docker wait {name}; sudo docker inspect {name}")
            assert "internal error" not in result.stderr, result.stderr
        sandbox.snapshot()
        assert sandbox.exec("sudo docker rm -f " + " ".join(strange)).ok
        assert sandbox.containers.list() == []


@pytest.mark.parametrize("what", ODD)
def test_a_snapshot_with_settings_that_make_no_sense(what: str) -> None:
    store = Store.memory()
    with pytest.raises(SnapshotError) as caught:
        Sandbox.restore(kept(store, **ODD[what]), store=store).close()
    assert str(caught.value).isprintable()


def test_changes_over_a_mount_that_is_not_needed_are_no_snapshot() -> None:
    empty = digest_of(encode_directory([]))
    with pytest.raises(SnapshotError, match="mount"):
        kept(Store.memory(), trees=[Tree(b"/m", "overlay", empty)])


@pytest.mark.parametrize(
    "arguments", [["ls"], ["show"], ["diff"], ["diff", "-p"], ["ls", "--json"], ["show", "--json"]]
)
def test_no_name_of_a_store_reaches_the_terminal(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = str(tmp_path / "store.db")
    store = Store.sqlite(place)
    evil = b"\x1b[2J\n\x07\xc2\x9b\xe2\x80\xae\xff"
    (tree,) = Objects(store).write([encode_directory([Entry(evil, Kind.FILE), Entry(b"l", Kind.SYMLINK, target=evil)])])
    parent = kept(store)
    text = evil[:-1].decode()
    ref = kept(
        store, trees=[Tree(b"/" + evil, "memory", tree)], parent=bytes.fromhex(parent[7:]), lost=[text], user=text,
        hostname=text, cwd=b"/" + evil, env=[(evil, evil)],
    )  # fmt: skip
    store.close()
    with closing(sqlite3.connect(place)) as connection, connection:
        for name in (f"label/{text}", f"sandbox/{text}", f"snapshot/{text}", text):
            connection.execute("INSERT INTO refs VALUES (?, ?)", (name, bytes.fromhex(ref[7:])))
    command, *options = arguments
    main(["snapshot", command, *options, *([ref] if command != "ls" else []), "--store", place])
    said = "".join(capsys.readouterr())
    assert said.replace("\n", "").isprintable()
    assert len(said.splitlines()) < 20


def test_two_trees_that_are_endless_but_alike_are_compared_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each directory twice in the one above, sixty levels deep; they differ in nothing that shows."""
    monkeypatch.setattr(tree_diff, "_MAX", 2000)
    store = Store.memory()
    refs = []
    for group in (1, 2):
        (digest,) = Objects(store).write([encode_directory([Entry(b"f", Kind.FILE, link_group=group)])])
        for _ in range(60):
            twice = [Entry(name, Kind.DIRECTORY, parts=[digest]) for name in (b"a", b"b")]
            (digest,) = Objects(store).write([encode_directory(twice)])
        refs.append(kept(store, trees=[Tree(b"/t", "memory", digest)]))
    with pytest.raises(SnapshotError, match="differ in more"):
        Snapshot.find(refs[0], store).diff(refs[1])


def test_a_directory_object_is_counted_before_it_is_decoded() -> None:
    count = 5_000_000
    head = b"d\x91\x9a\xc4\x01f\x01\x00\x00\x00\x00" + b"\xcf" + (count << 22).to_bytes(8, "big") + b"\x00\xc4\x00"
    data = head + b"\xdd" + count.to_bytes(4, "big") + b"\xc4\x00" * count

    def decode() -> None:
        with pytest.raises(StoreError, match="too many"):
            decode_directory(data)

    assert peak(decode) < 16 * MB


def layer(*members: tuple[str, str | None]) -> bytes:
    """A tar archive of files, and of symbolic links to somewhere."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, target in members:
            member = tarfile.TarInfo(name)
            if target is not None:
                member.type, member.linkname = tarfile.SYMTYPE, target
            archive.addfile(member)
    return made.getvalue()


def unpack(data: bytes) -> None:
    meter = Meter()
    meter.begin(len(data))
    apply_layer(FileTree(), [data], meter)


def test_an_image_is_not_nested_deeper_by_its_links() -> None:
    deep = "d/" * 1500
    unpack(layer((deep + "f", None), ("s", deep)))
    with pytest.raises(ImageError, match="deep"):
        unpack(layer((deep + "f", None), ("s", deep), ("s/" + deep + "g", None)))


def test_nor_are_its_links_gone_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty links, each to a path that goes back and forth: 80,000 steps for each file."""
    monkeypatch.setattr(image_tree, "_STEPS_MAX", 1_000_000)
    links = [(f"l{n}", "d/../" * 800 + f"l{n + 1}") for n in range(38)]
    files = [(f"l0/f{n}", None) for n in range(1000)]
    with pytest.raises(ImageError, match="deep"):
        unpack(layer(("d/x", None), *links, ("l38", "d"), *files))


# A store that does not answer.


def test_many_files_of_a_store_that_hangs_are_one_deadline() -> None:
    """Whatever a worker asks for by one message: listings, contents, links to count."""
    stop = threading.Event()

    class Hanging(MemoryStore):
        hangs = False

        def read(self, digests: Any) -> Any:
            if self.hangs:
                stop.wait(30)
            return super().read(digests)

    store = Hanging()
    objects = Objects(store)
    names = [b"%d" % n for n in range(60)]
    inner = [objects.write([encode_directory([Entry(name, Kind.FIFO)])])[0] for name in names]
    pieces = objects.write([PIECE + b"hangs %s" % name for name in names])
    files = [
        Entry(b"f" + name, Kind.FILE, size=len(name) + 6, parts=[p]) for name, p in zip(names, pieces, strict=True)
    ]
    below = [Entry(b"d" + name, Kind.DIRECTORY, parts=[d]) for name, d in zip(names, inner, strict=True)]
    (root,) = objects.write([encode_directory(files + below)])
    server = StoredTree(objects, Tree(b"/", "root", root), seconds=0.4)
    nodes = [server.walk(server.root, name) for name in server.entries(server.root)]
    store.hangs = True
    export = Export(server)
    began = time.monotonic()
    assert export.serve({"op": "scan", "nodes": [[export._give(server.root)[0], 0]]})["ok"]
    for node in nodes:
        assert export.serve({"op": "contents", "nodes": [export._give(node)[0]]}) == {"ok": [None]}
    assert time.monotonic() - began < 15  # and not sixty times 0.4 s
    stop.set()


def test_a_server_that_is_at_work_for_a_snapshot_does_not_hold_up_the_loop_at_close(tmp_path: Path) -> None:
    async def main() -> None:
        sandbox = AsyncSandbox(mounts={"/m": Mount.overlay(Mount.host(str(tmp_path)))})
        async with sandbox:
            guard = sandbox._link.offers.guard
            held, done = threading.Event(), threading.Event()

            def work() -> None:
                with guard:
                    held.set()
                    done.wait(20)

            working = threading.Thread(target=work)
            working.start()
            held.wait()
            await sandbox.close()
            assert working.is_alive()  # nobody has waited for it
            done.set()
            await asyncio.to_thread(working.join)

    asyncio.run(main())


def test_a_file_of_the_owners_is_read_once_however_often_it_is_named(tmp_path: Path) -> None:
    """A worker says of a thousand files that they are a moved one of the owner's."""
    (tmp_path / "big").write_bytes(b"x" * MB)
    reads: list[int] = []

    class Counting(HostDirServer):
        def open(self, node: Any, flags: int) -> Any:
            reads.append(1)
            return super().open(node, flags)

    names = {b"%d" % number: number for number in range(2, 1002)}
    over = Begun(1, 10, [ROOT, CapturedTree(b"/m", 2, 1, 0)], [])
    moved = [replace(file(number, lower=2, as_lower=True, contents=False), tree=2) for number in names.values()]
    lost = Lost(once(directory(1), replace(directory(1, names, lower=1, as_lower=True), tree=2), *moved), begun=over)
    server = Counting(str(tmp_path))
    export = lost.offers.exported(lost.offers.export(server, True))
    assert export is not None
    assert [export._give(node)[0] for node in (server.root, server.walk(server.root, "big"))] == [1, 2]
    assert lost.snapshot().record.size == 1000 * MB
    assert len(reads) == 1
    lost.offers.close()
