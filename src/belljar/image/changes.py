"""What a command changed in a native sandbox, as changes of its image: without what is the sandbox's own."""

from __future__ import annotations

from typing import Final

from belljar.image.tree import FileTree, Node
from belljar.kernel.machine import REPLAY_NS
from belljar.store.tree import Kind

_OWN: Final = frozenset({b"dev", b"proc", b"run", b"sys", b"tmp"})
"""Directories of a sandbox's own: they stay as the image has them."""
_NOTHING: Final = Node(Kind.DIRECTORY)


def keep_changes(image: FileTree, before: FileTree, after: FileTree, started_ns: int) -> FileTree:
    """The image's tree with what is different between the sandbox before a command and after it.

    A sandbox has files of its own beside the image's: what is the same before and after is taken from the image. What
    was written after `started_ns` has the time of a build.
    """
    made = FileTree(_directory(image.root, before.root, after.root, started_ns))
    waiting = [(made.root, image.root, before.root, after.root)]
    own: list[tuple[Node, bytes]] = []
    while waiting:
        into, old, first, last = waiting.pop()
        for name, node in last.names.items():
            there, then = old.names.get(name), first.names.get(name)
            if into is made.root and name in _OWN:
                kept = there
            elif node.is_directory:
                was = there if there is not None and there.is_directory else _NOTHING
                start = then if then is not None and then.is_directory else _NOTHING
                kept = _directory(was, start, node, started_ns)
                waiting.append((kept, was, start, node))
                if was is _NOTHING and start is not _NOTHING:
                    own.append((into, name))
            elif then is not None and _facts(then) == _facts(node):
                kept = there
            else:
                kept = node
                kept.mtime_ns = _time(node, started_ns)
            if kept is not None:
                into.names[name] = kept
    for into, name in reversed(own):  # directories that only the sandbox had, unless something is in them now
        if not into.names[name].names:
            del into.names[name]
    return made


def _directory(image: Node, before: Node, after: Node, started_ns: int) -> Node:
    """A directory without names: what the command changed of its attributes, else those that the image has."""
    same = image is not _NOTHING and (before.mode, before.uid, before.gid) == (after.mode, after.uid, after.gid)
    owner = image if same else after
    time = image.mtime_ns if same and before.mtime_ns == after.mtime_ns else _time(after, started_ns)
    return Node(Kind.DIRECTORY, owner.mode, owner.uid, owner.gid, time)


def _facts(node: Node) -> tuple[object, ...]:
    return node.kind, node.mode, node.uid, node.gid, node.mtime_ns, node.size, node.target, node.parts


def _time(node: Node, started_ns: int) -> int:
    return REPLAY_NS if node.mtime_ns >= started_ns else node.mtime_ns
