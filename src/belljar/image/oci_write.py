"""An image as an OCI layout that `docker load` takes, too: the same bytes for the same image, on any machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from belljar.abi.dataclass import dataclass
from belljar.abi.paths import fsdecode
from belljar.image.oci import CONFIG_TYPE, INDEX_TYPE, LAYER_TYPE, LAYOUT_VERSION, MANIFEST_TYPE, REF_NAME
from belljar.image.record import ImageRecord, config_of, environment_of
from belljar.image.tree import FileTree, Node
from belljar.libc.tar_header import DIRECTORY, FIFO, HARD_LINK, RECORD, REGULAR, SYMLINK, Member, encode
from belljar.store.objects import PIECE_BYTES, content_of
from belljar.store.store import Objects
from belljar.store.tree import Kind

_KINDS: Final = {Kind.FILE: REGULAR, Kind.DIRECTORY: DIRECTORY, Kind.SYMLINK: SYMLINK, Kind.FIFO: FIFO}
_LONG_AGO: Final = "1970-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True)
class LayoutFile:
    """A file of a layout; `chunks` gives its bytes as often as it is asked."""

    name: str
    size: int
    chunks: Callable[[], Iterable[bytes]]


def layout_files(objects: Objects, record: ImageRecord, name: str) -> list[LayoutFile]:
    """The files of a layout with one image: one layer, not compressed, since compressors differ. Sorted. StoreError.

    As other tools have it, `index.json` says the tag alone, and `manifest.json` the whole name ("": it has none).
    """
    tree = FileTree.load(objects, record.trees[0])
    layer = partial(_layer_chunks, tree, objects)
    sum_, size = hashlib.sha256(), 0
    for chunk in layer():
        sum_.update(chunk)
        size += len(chunk)
    files = [LayoutFile(f"blobs/sha256/{sum_.hexdigest()}", size, layer)]
    diff_id = "sha256:" + sum_.hexdigest()

    def add(file_name: str | None, value: object) -> tuple[str, int]:
        """Add a JSON file, or a blob; give its digest and size."""
        data = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
        digest = hashlib.sha256(data).hexdigest()
        files.append(LayoutFile(file_name or f"blobs/sha256/{digest}", len(data), lambda: [data]))
        return "sha256:" + digest, len(data)

    config = add(None, _config(record, diff_id))
    manifest = add(
        None,
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": _descriptor(CONFIG_TYPE, *config),
            "layers": [_descriptor(LAYER_TYPE, diff_id, size)],
        },
    )
    tag = name.rpartition("/")[2].partition(":")[2] or "latest"
    listed = {**_descriptor(MANIFEST_TYPE, *manifest), "annotations": {REF_NAME: tag}}
    add("index.json", {"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": [listed]})
    add("oci-layout", {"imageLayoutVersion": LAYOUT_VERSION})
    full = name if ":" in name.rpartition("/")[2] else f"{name}:latest"
    saved = {"Config": _blob(config[0]), "RepoTags": [full] if name else None, "Layers": [_blob(diff_id)]}
    add("manifest.json", [saved])
    return sorted(files, key=lambda file: file.name)


def archive_chunks(files: Sequence[LayoutFile]) -> Iterator[bytes]:
    """A layout as a tar archive."""
    written = 0
    for directory in sorted({"/".join(file.name.split("/")[:depth]) for file in files for depth in (1, 2)}):
        if not any(file.name == directory for file in files):
            written += len(header := encode(Member(directory + "/", DIRECTORY, 0o755), "posix"))
            yield header
    for file in files:
        header = encode(Member(file.name, REGULAR, 0o644, size=file.size), "posix")
        padding = b"\0" * (-file.size % 512)
        yield header
        yield from file.chunks()
        yield padding
        written += len(header) + file.size + len(padding)
    yield _end(written)


def _end(written: int) -> bytes:
    return b"\0" * (1024 + -(written + 1024) % RECORD)


def _blob(digest: str) -> str:
    return "blobs/" + digest.replace(":", "/")


def _descriptor(media_type: str, digest: str, size: int) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": digest, "size": size}


def _config(record: ImageRecord, diff_id: str) -> dict[str, Any]:
    settings = config_of(record)
    texts = settings.history or ["belljar image build"]
    history: list[dict[str, Any]] = [{"created": _LONG_AGO, "created_by": text, "empty_layer": True} for text in texts]
    del history[-1]["empty_layer"]
    return {
        "created": _LONG_AGO,
        "architecture": "amd64",
        "os": "linux",
        "config": {
            "User": record.user,
            "Env": [f"{name}={value}" for name, value in sorted(environment_of(record).items())],
            "WorkingDir": fsdecode(record.cwd),
            "Cmd": settings.command,
        },
        "rootfs": {"type": "layers", "diff_ids": [diff_id]},
        "history": history,
    }


def _layer_chunks(tree: FileTree, objects: Objects) -> Iterator[bytes]:
    """The tree as a tar archive: a directory before what is in it, in the order of names."""
    first: dict[int, bytes] = {}
    written = 0
    for path, node in tree.walk():
        member = _member(path, node, first.get(id(node)))
        header = encode(member, "posix")
        written += len(header)
        yield header
        if member.kind == REGULAR:
            yield from _file_chunks(node, objects)
            padding = b"\0" * (-node.size % 512)
            written += node.size + len(padding)
            yield padding
        if not node.is_directory:
            first.setdefault(id(node), path)
    yield _end(written)


def _member(path: bytes, node: Node, link_to: bytes | None) -> Member:
    member = Member(fsdecode(path), _KINDS[node.kind], node.mode, node.uid, node.gid, mtime=node.mtime_ns)
    if node.is_directory:
        member.name = f"{member.name}/" if path else "./"
    elif link_to is not None:
        member.kind, member.link = HARD_LINK, fsdecode(link_to)
    elif node.kind is Kind.SYMLINK:
        member.link = fsdecode(node.target)
    elif node.kind is Kind.FILE:
        member.size = node.size
    return member


def _file_chunks(node: Node, objects: Objects) -> Iterator[bytes]:
    left = node.size
    for part in node.parts:
        size = min(left, PIECE_BYTES)
        data = content_of(objects.read([part])) if part else bytes(size)
        yield data
        left -= size
