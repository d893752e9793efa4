"""What a worker tells of its files is hostile: what makes no tree is refused."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from belljar.abi.capture import Record
from belljar.abi.errors import SnapshotError
from belljar.abi.flags import S_IFCHR, S_IFDIR, S_IFREG
from belljar.api.captured_tree import TreeTable
from belljar.store.objects import Digest
from belljar.store.tree import Entry, Kind, decode_directory

FILE, DIRECTORY = S_IFREG | 0o644, S_IFDIR | 0o755
DATA = b"d" * 32


def directory(number: int, children: dict[bytes, int] | None = None) -> Record:
    children = children or {}
    return Record(1, number, DIRECTORY, 0, 0, 5, names=[*children], children=[*children.values()])


def file(number: int) -> Record:
    return Record(1, number, FILE, 0, 0, 5, size=3)


class Tree:
    """A table, and what it wrote."""

    def __init__(self) -> None:
        self.table = TreeTable(1, b"", {})
        self.objects: dict[Digest, bytes] = {}

    def update(self, *records: Record) -> int:
        """Gives how many objects are new."""
        parts = [(record, [DATA] if record.mode == FILE else []) for record in records]
        new = self.table.update(parts, None, lambda digest: decode_directory(self.objects[digest]))
        self.objects.update(new)
        return len(new)

    def paths(self) -> dict[str, Entry]:
        found: dict[str, Entry] = {}
        todo = [("", self.table.root.parts[0])]
        while todo:
            above, digest = todo.pop()
            for entry in decode_directory(self.objects[digest]):
                path = f"{above}/{entry.name.decode()}"
                found[path] = entry
                if entry.kind is Kind.DIRECTORY:
                    todo.append((path, entry.parts[0]))
        return found


def test_only_directories_on_the_way_up_are_made_anew() -> None:
    tree = Tree()
    assert tree.update(
        directory(1, {b"a": 2, b"b": 3}), directory(2, {b"c": 4}), directory(3, {b"f": 6}), directory(4, {b"g": 5}),
        file(5), file(6),
    ) == 4  # fmt: skip
    before = tree.paths()
    assert tree.update(replace(file(5), mtime=6)) == 3
    after = tree.paths()
    assert after["/a/c/g"].mtime_ns == 6
    assert after["/b"] == before["/b"]
    assert tree.update() == 0


def test_moves_and_removals() -> None:
    tree = Tree()
    tree.update(
        directory(1, {b"a": 2, b"b": 3}), directory(2, {b"c": 4}), directory(3), directory(4, {b"f": 5}), file(5)
    )
    tree.update(directory(2), directory(3, {b"d": 4}), directory(4, {b"f": 5}))
    assert sorted(tree.paths()) == ["/a", "/b", "/b/d", "/b/d/f"]
    tree.update(directory(1, {b"a": 2}))
    assert sorted(tree.paths()) == ["/a"]
    assert len(tree.table._nodes) == 2
    tree.update(directory(2, {b"new": 7}), file(7))
    assert sorted(tree.paths()) == ["/a", "/a/new"]


def test_hard_links_have_a_number_while_there_are_several() -> None:
    tree = Tree()
    tree.update(directory(1, {b"a": 2, b"f": 3}), directory(2, {b"g": 3}), file(3))
    found = tree.paths()
    group = found["/f"].link_group
    assert group
    assert found["/a/g"].link_group == group
    assert tree.table.hard_links() == [(group, 2)]
    tree.update(directory(2), file(3))
    assert tree.paths()["/f"].link_group == 0
    assert tree.table.hard_links() == []
    other = Tree()
    other.update(file(9), directory(7, {b"g": 9}), directory(1, {b"f": 9, b"a": 7}))
    tree.update(directory(2, {b"g": 3}), file(3))
    assert other.table.root == tree.table.root


def test_very_deep_and_very_wide() -> None:
    tree = Tree()
    deep = [directory(number, {b"d": number + 1}) for number in range(1, 5000)]
    tree.update(*deep, directory(5000, {b"%d" % n: n for n in range(5001, 15_000)}), *map(file, range(5001, 15_000)))
    assert tree.table.growth == 3 * 9999


@pytest.mark.parametrize(
    "records",
    [
        [directory(2)],
        [file(1)],
        [directory(1), directory(1)],
        [directory(1, {b"a": 2})],
        [directory(1, {b"a": 1})],
        [directory(1, {b"a": 2}), directory(2, {b"b": 1})],
        [directory(1, {b"a": 2, b"b": 2}), directory(2)],
        [directory(1, {b"a": 2, b"b": 3}), directory(2, {b"c": 3}), directory(3)],
        [directory(1, {b"a": 4}), directory(4), directory(2, {b"b": 3}), directory(3, {b"b": 2})],
        [directory(1, {b"": 2}), file(2)],
        [directory(1, {b"..": 2}), file(2)],
        [directory(1, {b"a/b": 2}), file(2)],
        [directory(1, {b"x" * 256: 2}), file(2)],
        [directory(1, {b"a": 0})],
        [directory(1), replace(directory(2, {b"a": 3}), goes_on=True)],
        [directory(1, {b"a": 2}), replace(directory(1, {b"a": 2}), goes_on=True), file(2)],
        [replace(directory(1, {b"a": 2}), children=[2, 3]), file(2)],
        [directory(1, {b"a": 2}), replace(file(2), names=[b"x"], children=[1])],
        [directory(1, {b"a": 2}), replace(file(2), lower=7)],
        [directory(1, {b"a": 2}), replace(file(2), contents=False)],
        [directory(1, {b"a": 2}), replace(file(2), as_lower=True)],
        [directory(1, {b"a": 2}), replace(file(2), mode=S_IFCHR | 0o644)],
        [directory(1, {b"a": 2}), replace(file(2), uid=-1)],
        [directory(1, {b"a": 2}), replace(file(2), mtime=1 << 70)],
        [directory(1, {b"a": 2}), replace(file(2), size=1 << 60)],
        [directory(1, {b"a": 2}), replace(file(2), target=b"x")],
        [directory(1, {b"a": -2}), file(-2)],
    ],
)
def test_what_makes_no_tree_is_refused(records: list[Record]) -> None:
    with pytest.raises(SnapshotError, match="makes no sense"):
        Tree().update(*records)


def test_a_tree_can_not_be_broken_later() -> None:
    for records in (
        [directory(2, {b"x": 1})],
        [directory(3, {b"x": 2})],
        [file(2)],
        [directory(4)],
        [directory(1, {b"a": 2, b"n": 9})],
    ):
        tree = Tree()
        tree.update(directory(1, {b"a": 2, b"f": 4}), directory(2, {b"b": 3}), directory(3), file(4))
        with pytest.raises(SnapshotError, match="makes no sense"):
            tree.update(*records)
