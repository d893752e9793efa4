"""`belljar snapshot`: list, compare, export, import and remove snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from belljar.api.snapshot import Change, Snapshot
    from belljar.store.snapshot import SnapshotRecord
    from belljar.store.store import Store

_LETTERS: Final = {"added": "A", "modified": "M", "deleted": "D", "attributes": "X"}
_COLOURS: Final = {"added": "\x1b[32m", "modified": "\x1b[33m", "deleted": "\x1b[31m", "attributes": "\x1b[36m"}
_SHORT: Final = 12
"""Digits of a digest that are shown in a list."""
_SHOWN_MAX: Final = 1 << 20
"""Bytes of the largest file that is shown in a diff."""
_REF: Final = "a label, a ref, or its first digits (at least 8)"


def add_to(subcommands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subcommands.add_parser(
        "snapshot",
        help="list, compare and move snapshots",
        description="List, compare, export, import and remove the snapshots that sandboxes made. See docs/state.md.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    def add(name: str, run: Callable[[argparse.Namespace], int], help: str, more: str = "") -> argparse.ArgumentParser:
        action = actions.add_parser(name, help=help, description=f"{help[0].upper()}{help[1:]}.{more}")
        add_store_options(action)
        action.set_defaults(run=run)
        return action

    add("ls", _list, "list the snapshots, each above the one it came from")
    add("show", _show, "show what is known of a snapshot").add_argument("ref", metavar="REF", help=_REF)
    diff = add(
        "diff",
        _diff,
        "show what is different in another snapshot",
        " The exit code is 1 if there are differences. A: added, M: modified, D: deleted, X: only mode, owner or time.",
    )
    diff.add_argument("ref", metavar="REF", help=_REF)
    diff.add_argument("other", metavar="OTHER", nargs="?", help="by default REF is compared with its parent")
    diff.add_argument("-p", "--patch", action="store_true", help="show the lines that differ")
    export = add("export", _export, "write a snapshot, with all that it needs, to one file")
    export.add_argument("ref", metavar="REF", help=_REF)
    export.add_argument("file", metavar="FILE")
    add("import", _import, "take a snapshot from a file that export wrote").add_argument("file", metavar="FILE")
    remove = add("rm", _remove, "remove snapshots", " Their files go with a later `belljar store gc`.")
    remove.add_argument("refs", metavar="REF", nargs="+", help=_REF)


def add_store_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--store",
        metavar="LOCATION",
        help="a path, or a URL for fsspec (default: $BELLJAR_STORE, else belljar/store.db in your data directory)",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def store_of(arguments: argparse.Namespace, *, must_exist: bool = True) -> Store:
    """The store of --store, or the default one. StoreError."""
    from belljar.store.default_host import default_store, open_store

    return default_store() if arguments.store is None else open_store(arguments.store, must_exist=must_exist)


def say_json(value: object) -> None:
    import json

    from belljar.cli.screen_host import say

    say(json.dumps(value))


def size_text(size: float) -> str:
    """A number of bytes, as people read it."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def _list(arguments: argparse.Namespace) -> int:
    from belljar.api.snapshot import Snapshot
    from belljar.cli.graph import children_first, draw
    from belljar.cli.screen_host import colour, say
    from belljar.store.snapshot import list_snapshots
    from belljar.store.store import Objects

    store = store_of(arguments)
    listed = list_snapshots(Objects(store))
    parents = {digest: record.parent for digest, (record, _) in listed.items() if record is not None and record.parent}
    order = children_first([*reversed(listed)], parents)
    if arguments.json:
        whole = ((digest, listed[digest]) for digest in order)
        say_json([_described(Snapshot(store, digest, it), refs) for digest, (it, refs) in whole if it is not None])
        return 0
    for drawing, digest in draw(order, parents):
        say(drawing if digest is None else f"{drawing} {_line(digest, *listed[digest], coloured=colour())}")
    if not order:
        say("no snapshots yet: sandbox.snapshot() and `belljar run --snapshot LABEL` make them")
    return 0


def _line(digest: bytes, record: SnapshotRecord | None, refs: list[str], *, coloured: bool) -> str:
    digits, bold, dim, end = ("\x1b[33m", "\x1b[1;32m", "\x1b[2m", "\x1b[0m") if coloured else ("",) * 4
    names = [_name(ref) for ref in refs]
    shown = f"{digits}{digest.hex()[:_SHORT]}{end}" + (f" {bold}({', '.join(names)}){end}" if names else "")
    if record is None:
        return f"{shown} can't be read: see `belljar store check`"
    if record.label and record.label not in names:
        shown += f" {record.label}"
    return f"{shown} {dim}{_time_text(record.created / 1e9)}, {size_text(record.size)}{end}"


def _name(ref: str) -> str:
    """A ref as it is shown. Whoever can write to the store may have made it."""
    from belljar.api.errors import printable

    return printable(ref.removeprefix("label/"))


def _time_text(seconds: float) -> str:
    from datetime import UTC, datetime

    try:
        return datetime.fromtimestamp(seconds, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return "at some time"


def _described(snapshot: Snapshot, refs: list[str]) -> dict[str, Any]:
    return {
        "ref": snapshot.ref,
        "label": snapshot.label,
        "names": refs,
        "parent": snapshot.parent,
        "created": snapshot.created,
        "size": snapshot.size,
        "tree": snapshot.tree,
    }


def _show(arguments: argparse.Namespace) -> int:
    from belljar.abi.paths import fsdecode
    from belljar.api.errors import printable
    from belljar.api.snapshot import Snapshot
    from belljar.cli.screen_host import say
    from belljar.store.snapshot import KEEP

    store = store_of(arguments)
    snapshot = Snapshot.find(arguments.ref, store)
    record = snapshot.record
    refs = sorted(
        name for name, digest in store.list().items() if digest == snapshot.digest and name[: len(KEEP)] != KEEP
    )
    facts: dict[str, Any] = {
        **_described(snapshot, refs),
        "cwd": printable(fsdecode(record.cwd)),
        "user": record.user,
        "hostname": record.hostname,
        "env": [printable(fsdecode(name)) for name, _ in record.env],
        "limits": dict(record.limits),
        "trees": [printable(fsdecode(tree.path)) for tree in record.trees],
        "containers": [each.state.name for each in record.containers],
        "mounts": [printable(fsdecode(path)) for path in record.mounts],
        "tools": [printable(name) for name in record.tools],
        "variables": [each.language for each in record.variables],
        "lost": [printable(text) for text in record.lost],
    }
    if arguments.json:
        say_json(facts)
        return 0
    facts["created"], facts["size"] = _time_text(snapshot.created), f"{size_text(snapshot.size)} of files"
    facts["names"] = [_name(ref) for ref in refs]
    del facts["limits"]
    for name, value in facts.items():
        text = ", ".join(value) if isinstance(value, list) and name != "lost" else value
        for line in text if isinstance(text, list) else [text]:
            if line:
                say(f"{name:<12}{printable(str(line))}")
    return 0


def _diff(arguments: argparse.Namespace) -> int:
    from belljar.abi.errors import SnapshotError
    from belljar.api.patch import show
    from belljar.api.snapshot import Snapshot
    from belljar.cli.screen_host import colour, say

    store = store_of(arguments)
    before = Snapshot.find(arguments.ref, store)
    if arguments.other is not None:
        after = Snapshot.find(arguments.other, store)
    elif before.parent is None:
        raise SnapshotError(f"{before!r} has no parent: name another snapshot to compare it with")
    else:
        before, after = Snapshot.find(before.parent, store), before
    changes = before.diff(after)
    if arguments.json:
        say_json([{"path": change.path, "kind": change.kind} for change in changes])
    elif arguments.patch:
        for line in _patch(before, after, changes):
            say(line)
    else:
        for change in changes:
            begin, end = (_COLOURS[change.kind], "\x1b[0m") if colour() else ("", "")
            say(f"{begin}{_LETTERS[change.kind]}{end} {show(change.path)}")
    return 1 if changes else 0


def _patch(before: Snapshot, after: Snapshot, changes: list[Change]) -> Iterator[str]:
    from belljar.api.patch import render_file

    for change in changes:
        sides = [_side(snapshot, entry) for snapshot, entry in ((before, change.before), (after, change.after))]
        if sides != [None, None] and (change.kind != "attributes" or sides[0] != sides[1]):
            yield from render_file(change.path.lstrip("/"), *sides)


def _side(snapshot: Snapshot, entry: Any) -> tuple[int, bytes | None] | None:
    """A file as `render_file` takes it; None of what is no file or symlink."""
    from belljar.abi.paths import fsencode
    from belljar.api.local_host import EXECUTABLE, FILE, SYMLINK

    if entry is None or entry.kind not in ("file", "symlink"):
        return None
    if entry.kind == "symlink":
        return SYMLINK, fsencode(snapshot.files.readlink(entry.path))
    mode = EXECUTABLE if entry.mode & 0o100 else FILE
    return mode, snapshot.files.read_bytes(entry.path) if entry.size <= _SHOWN_MAX else None


def _export(arguments: argparse.Namespace) -> int:
    from belljar.api.snapshot import Snapshot

    snapshot = Snapshot.find(arguments.ref, store_of(arguments))
    snapshot.export(arguments.file)
    if arguments.json:
        say_json({"ref": snapshot.ref, "file": arguments.file})
    return 0


def _import(arguments: argparse.Namespace) -> int:
    from belljar.api.snapshot import Snapshot
    from belljar.cli.screen_host import say

    snapshot = Snapshot.import_(arguments.file, store_of(arguments, must_exist=False))
    if arguments.json:
        say_json(_described(snapshot, []))
    else:
        say(snapshot.ref)
    return 0


def _remove(arguments: argparse.Namespace) -> int:
    from belljar.store.snapshot import find_snapshot, ref_of, remove_snapshot
    from belljar.store.store import Objects

    store = store_of(arguments)
    found = dict.fromkeys(find_snapshot(store, ref) for ref in arguments.refs)
    for digest in found:
        remove_snapshot(Objects(store), digest)
    if arguments.json:
        say_json([ref_of(digest) for digest in found])
    return 0
