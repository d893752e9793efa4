"""Snapshots as records of a store: what a sandbox was at one moment, and the refs that name it.

`snapshot/HEX` keeps a snapshot, `label/LABEL` names the newest one with that label, `sandbox/NAME` the newest
checkpoint of a named sandbox, `image/NAME` an image. A parent is no link: it may be removed, and its children stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from math import inf
from typing import AnyStr, Final, Literal

from msgspec import DecodeError, Struct, ValidationError, msgpack, structs

from belljar.abi.container_state import CONTAINERS_MAX, ContainerState, wrong_container
from belljar.abi.errors import SnapshotError
from belljar.store.errors import ObjectMissing, RefConflict, StoreError
from belljar.store.objects import DIGEST_BYTES, Digest, Record, decode_record, encode_record
from belljar.store.store import Objects, Store, check_name

SHA256: Final = "sha256:"
KEEP: Final = "snapshot/"
LABEL: Final = "label/"
SANDBOX: Final = "sandbox/"
IMAGE: Final = "image/"
PREFIX_MIN: Final = 8
"""Digits of the shortest part of a digest that names a snapshot."""

_VERSION: Final = 1
_BODY_MAX: Final = 16 << 20
_TREES_MAX: Final = 1000
_INT64: Final = 1 << 63
_MODE_MAX: Final = 0o7777
_ID_MAX: Final = (1 << 32) - 1


class Tree(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A file system of a snapshot: its root directory, and where it was mounted. `path` is absolute."""

    path: bytes
    kind: Literal["root", "memory", "overlay"]
    """"overlay": only the differences from a mount that `restore` is given again."""
    digest: Digest
    mode: int = 0o755
    """Mode, owner and time of the root directory itself, which no directory object has."""
    uid: int = 0
    gid: int = 0
    mtime_ns: int = 0
    hard_links: list[tuple[int, int]] = []
    """For each link group of the tree, by number: how many names it has."""


class ContainerRecord(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A container that does not run, and its root: all files, those of its image too."""

    state: ContainerState
    files: Tree


class Variables(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The variables of an open interpreter, as pieces."""

    language: Literal["python", "javascript"]
    pieces: list[Digest]


class SnapshotRecord(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, kw_only=True):
    """What a snapshot or an image says. Lists of pairs are sorted."""

    version: int = _VERSION
    created: int
    """Nanoseconds since 1970; 0 for an image."""
    label: str = ""
    parent: Digest = b""
    """The snapshot that this one goes on from; b"": none."""
    trees: list[Tree]
    """The root first, then the others by path."""
    env: list[tuple[bytes, bytes]] = []
    cwd: bytes = b"/"
    user: str = ""
    hostname: str = ""
    limits: list[tuple[str, int | float]] = []
    variables: list[Variables] = []
    lost: list[str] = []
    """What could not be kept, as text for people."""
    size: int = 0
    """Bytes of all files."""
    mounts: list[bytes] = []
    """Paths of the mounts that `restore` must be given, sorted."""
    config: bytes = b""
    """What else an image has to say."""
    tools: list[str] = []
    """Names of the owner's functions that were commands, sorted."""
    checkpoint: Literal["exec"] | float | None = None
    """When the sandbox was kept under its name without being asked."""
    containers: list[ContainerRecord] = []
    """In the order they were made. If there are none, this is not written: earlier versions do not know it."""

    @property
    def roots(self) -> list[Digest]:
        """The root directories of all file systems, those of containers too."""
        return [tree.digest for tree in self.trees] + [each.files.digest for each in self.containers]


RecordKind = Literal["snapshot", "image"]

_encoder: Final = msgpack.Encoder()
_decoder: Final = msgpack.Decoder(SnapshotRecord)
_version: Final = msgpack.Decoder()


def encode_snapshot(record: SnapshotRecord, kind: RecordKind = "snapshot") -> bytes:
    """Make the object of a snapshot. SnapshotError for one that makes no sense."""
    if wrong := _wrong(record):
        raise SnapshotError(f"this is no {kind}: {wrong}")
    fields = structs.astuple(record)
    body = _encoder.encode(fields if record.containers else fields[:-1])
    if len(body) > _BODY_MAX:
        raise SnapshotError(f"what the {kind} says beside its files takes {len(body)} bytes: the most is {_BODY_MAX}")
    return encode_record(Record(kind, _links(record), body))


def decode_snapshot(data: bytes, kind: RecordKind = "snapshot") -> SnapshotRecord:
    """Read the object of a snapshot. SnapshotError for anything but what `encode_snapshot` makes."""
    try:
        found = decode_record(data)
    except StoreError:
        raise SnapshotError(f"this object is no {kind}") from None
    if found.kind != kind:
        raise SnapshotError(f"this object is no {kind}: its kind is {found.kind[:20]!r}")
    if len(found.body) > _BODY_MAX:
        raise SnapshotError(f"the {kind} can't be read: it says more than {_BODY_MAX} bytes")
    try:
        record = _decoder.decode(found.body)
    except (DecodeError, ValidationError) as error:
        raise SnapshotError(f"the {kind} can't be read: {_other_version(found.body) or error}") from None
    wrong = _wrong(record)
    if not wrong and (_links(record) != found.links or _encode_as(record, found.body) != found.body):
        wrong = "it is not written in the one way that snapshots are"
    if wrong:
        raise SnapshotError(f"the {kind} can't be read: {wrong}")
    return record


def save_snapshot(objects: Objects, record: SnapshotRecord, label: str | None = None) -> Digest:
    """Keep a snapshot whose files are in the store already, under its digest and its label. Durable at return.

    `label`: the ref to make, where that is not the record's own; "": none.
    """
    label = record.label if label is None else label
    (digest,) = objects.write([encode_snapshot(record)])
    store = objects.backend
    if label:  # before the ref that lists it: whoever is killed here leaves no label that is listed and can't be found
        move_ref(store, LABEL + label, digest)
    if store.get(name := KEEP + digest.hex()) is None:
        store.set(name, digest, None)
    return digest


def move_ref(store: Store, name: str, digest: Digest) -> None:
    """Make a ref name an object, whatever it named before: the last who comes wins."""
    while (before := store.get(name)) != digest:
        try:
            store.set(name, digest, before)
        except RefConflict:
            continue
        return


def check_label(label: str) -> str:
    """Check a label. SnapshotError."""
    if not label:
        raise SnapshotError("a label is not empty: leave it out for a snapshot without one")
    try:
        check_name(LABEL + label)
    except (StoreError, UnicodeEncodeError):
        raise SnapshotError(f"{label[:100]!r} can't be a label: it takes up to 100 bytes of printable text") from None
    if label.startswith(SHA256):
        raise SnapshotError(f"{label!r} can't be a label: it would be taken for a digest")
    return label


def ref_of(digest: Digest) -> str:
    """The text for a digest: "sha256:" and its digits."""
    return SHA256 + digest.hex()


def find_snapshot(store: Store, text: str) -> Digest:
    """The snapshot that a label, the name of a sandbox, a digest with "sha256:", a full ref (such as "label/x"), or the
    first digits of a digest mean, in this order. SnapshotError if there is none, or more than one.
    """
    if text.startswith(SHA256):
        digest = _parse_hex(text.removeprefix(SHA256))
        if digest is not None:
            return digest
        text = text.removeprefix(SHA256)
    else:
        for name in (LABEL + text, SANDBOX + text, text):
            found = store.get(name) if "/" in name else None
            if found is not None:
                return found
    digits = text.lower()
    is_hex = not digits.strip("0123456789abcdef")
    if len(digits) >= PREFIX_MIN and is_hex:
        some = {found for name, found in store.list().items() if found.hex().startswith(digits) and _is_kept(name)}
        if len(some) == 1:
            return some.pop()
        if some:
            raise SnapshotError(f"{len(some)} snapshots begin with {text}: give more digits")
        if (digest := _parse_hex(digits)) is not None:
            return digest
    advice = "`belljar snapshot ls` lists those there are"
    if is_hex and 0 < len(digits) < PREFIX_MIN:
        advice = f"of a digest, give at least {PREFIX_MIN} digits"
    raise SnapshotError(f"there is no snapshot {text[:200]!r} in {store!r}: {advice}")


def read_snapshot(objects: Objects, digest: Digest, kind: RecordKind = "snapshot") -> SnapshotRecord:
    """The snapshot with this digest. SnapshotError if the store has none, or it can't be read; StoreError."""
    try:
        (data,) = objects.read([digest])
    except ObjectMissing:
        raise SnapshotError(f"the store has no {kind} {ref_of(digest)}") from None
    return decode_snapshot(data, kind)


def list_snapshots(objects: Objects) -> dict[Digest, tuple[SnapshotRecord | None, list[str]]]:
    """Every snapshot that a ref keeps, oldest first, with the refs that name it but for `snapshot/...`.

    None: it can't be read. Those come first.
    """
    refs: dict[Digest, list[str]] = {}
    for name, digest in sorted(objects.backend.list().items()):
        if _is_kept(name):
            refs.setdefault(digest, []).extend([] if name.startswith(KEEP) else [name])
    records: dict[Digest, SnapshotRecord | None] = dict.fromkeys(refs)
    for digest, data in objects.read_valid(list(refs)).items():
        with suppress(SnapshotError):
            records[digest] = decode_snapshot(data)

    def age(digest: Digest) -> tuple[int, Digest]:
        record = records[digest]
        return -1 if record is None else record.created, digest

    return {digest: (records[digest], refs[digest]) for digest in sorted(refs, key=age)}


def remove_snapshot(objects: Objects, digest: Digest) -> None:
    """Remove every ref that names a snapshot; a label moves to the next older snapshot that has it.

    Raises RefConflict, with the snapshot still kept, if one of them was moved meanwhile. The files go with the next
    collections.
    """
    store = objects.backend
    there = list_snapshots(objects)
    if digest not in there:
        raise SnapshotError(f"there is no snapshot {ref_of(digest)}: `belljar snapshot ls` lists those there are")
    for name in there[digest][1]:
        label = name.removeprefix(LABEL)
        older = [
            other
            for other, (record, _) in there.items()
            if record is not None and name != label == record.label and other != digest
        ]
        if older:
            store.set(name, older[-1], digest)
        else:
            store.delete(name, digest)
    if store.get(name := KEEP + digest.hex()) is not None:
        store.delete(name, digest)


def _is_kept(ref: str) -> bool:
    return ref.startswith((KEEP, LABEL, SANDBOX))


def _parse_hex(text: str) -> Digest | None:
    try:
        digest = bytes.fromhex(text)
    except ValueError:
        return None
    return digest if len(digest) == DIGEST_BYTES and len(text) == 2 * DIGEST_BYTES else None


def _links(record: SnapshotRecord) -> list[Digest]:
    return record.roots + [part for each in record.variables for part in each.pieces]


def _encode_as(record: SnapshotRecord, body: bytes) -> bytes:
    """The record as it was written, perhaps before the last fields were added."""
    return _encoder.encode(structs.astuple(record)[: len(_version.decode(body))])


def _other_version(body: bytes) -> str:
    """Say so if this was written by another version of belljar."""
    try:
        fields = _version.decode(body)
    except (DecodeError, ValidationError):
        return ""
    if isinstance(fields, list) and fields and isinstance(fields[0], int) and fields[0] != _VERSION:
        return f"it is of version {fields[0]}, and this belljar knows version {_VERSION}"
    return ""


def _wrong(record: SnapshotRecord) -> str:
    """Reason why this is no snapshot; "" if it is one."""
    if record.version != _VERSION:
        return f"it is of version {record.version}, and this belljar knows version {_VERSION}"
    if not 0 <= record.created < _INT64 or not 0 <= record.size < _INT64:
        return "a number is out of range"
    if record.label:
        try:
            check_label(record.label)
        except SnapshotError as error:
            return str(error)
    if len(record.parent) not in (0, DIGEST_BYTES):
        return "its parent is no digest"
    if any(len(link) != DIGEST_BYTES for link in _links(record)):
        return "a digest has a wrong length"
    if not record.trees or len(record.trees) > _TREES_MAX:
        return "it has no file systems, or too many"
    if [tree.kind == "root" for tree in record.trees] != [True] + [False] * (len(record.trees) - 1):
        return "it needs one root, before its other file systems"
    for tree in record.trees:
        if wrong := _wrong_tree(tree):
            return f"{tree.path[:200]!r}: {wrong}"
    paths = [tree.path for tree in record.trees]
    names = [name for name, _ in record.env]
    limits = [name for name, _ in record.limits]
    languages = [each.language for each in record.variables]
    if not (_is_sorted(paths) and _is_sorted(names) and _is_sorted(record.mounts)):
        return "a list is not sorted, or has something twice"
    if not (_is_sorted(limits) and _is_sorted(languages) and _is_sorted(record.tools)):
        return "a list is not sorted, or has something twice"
    if any(not name or b"=" in name or b"\0" in name + value for name, value in record.env):
        return "its environment makes no sense"
    if isinstance(record.checkpoint, float) and not 0 < record.checkpoint < inf:
        return "a number is out of range"
    if any(name in ("", ".", "..") or "/" in name or "\0" in name for name in record.tools):
        return "a tool's name makes no sense"
    if not all(_is_absolute(path) for path in (record.cwd, *record.mounts)):
        return "a path is not absolute"
    if not {tree.path for tree in record.trees if tree.kind == "overlay"} <= set(record.mounts):
        return "it has changes over a mount that it does not need"
    return _wrong_containers(record.containers)


def _wrong_containers(containers: Sequence[ContainerRecord]) -> str:
    if len(containers) > CONTAINERS_MAX:
        return "it has too many containers"
    names, ids = {each.state.name for each in containers}, {each.state.id for each in containers}
    if not len(names) == len(ids) == len(containers):
        return "two containers have one name"
    for each in containers:
        wrong = _wrong_tree(each.files) if each.files.kind == "root" else "this is no root"
        if wrong := wrong or wrong_container(each.state):
            return f"the container {each.state.name[:100]!r}: {wrong}"
    return ""


def _is_sorted(items: Sequence[AnyStr]) -> bool:
    return list(items) == sorted(set(items))


def _wrong_tree(tree: Tree) -> str:
    if not _is_absolute(tree.path) or (tree.kind == "root") != (tree.path == b"/"):
        return "this is no place of such a file system"
    if not (0 <= tree.mode <= _MODE_MAX and 0 <= tree.uid <= _ID_MAX and 0 <= tree.gid <= _ID_MAX):
        return "a number is out of range"
    if not -_INT64 <= tree.mtime_ns < _INT64:
        return "a time is out of range"
    before = 0
    for group, count in tree.hard_links:
        if not before < group < _INT64 or not 0 < count < 1 << 32:
            return "its hard links make no sense"
        before = group
    return ""


def _is_absolute(path: bytes) -> bool:
    parts = path.split(b"/")
    return path == b"/" or (parts[0] == b"" and b"\0" not in path and not {b"", b".", b".."} & set(parts[1:]))
