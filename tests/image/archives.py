"""Images for tests, made by hand: layers of tar entries, and the layouts around them."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import zstandard

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"


def entry(name: str, data: bytes = b"", kind: bytes = tarfile.REGTYPE, **fields: Any) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type, info.size, info.mode = kind, len(data), 0o755 if kind == tarfile.DIRTYPE else 0o644
    for field, value in fields.items():
        setattr(info, field, value)
    return info, data


def directory(name: str, **fields: Any) -> tuple[tarfile.TarInfo, bytes]:
    return entry(name, kind=tarfile.DIRTYPE, **fields)


def symlink(name: str, target: str) -> tuple[tarfile.TarInfo, bytes]:
    return entry(name, kind=tarfile.SYMTYPE, linkname=target)


def hard_link(name: str, target: str) -> tuple[tarfile.TarInfo, bytes]:
    return entry(name, kind=tarfile.LNKTYPE, linkname=target)


def layer(*entries: tuple[tarfile.TarInfo, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for info, data in entries:
            archive.addfile(info, io.BytesIO(data))
    return made.getvalue()


def sha256(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def pack(data: bytes, how: str) -> tuple[bytes, str]:
    """A layer as it is kept, and the end of its media type."""
    match how:
        case "gzip":
            return gzip.compress(data, mtime=0), "+gzip"
        case "zstd":
            return zstandard.compress(data), "+zstd"
    return data, ""


def config(layers: Iterable[bytes], **settings: Any) -> dict[str, Any]:
    return {
        "architecture": "amd64",
        "os": "linux",
        "config": settings,
        "rootfs": {"type": "layers", "diff_ids": [sha256(each) for each in layers]},
    }


def oci(layers: list[bytes], how: str = "gzip", tag: str = "latest", **settings: Any) -> dict[str, bytes]:
    """The files of an OCI layout with one image."""
    files = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}'}
    described = []
    for each in layers:
        kept, suffix = pack(each, how)
        described.append(add(files, kept, f"application/vnd.oci.image.layer.v1.tar{suffix}"))
    made = add(files, json.dumps(config(layers, **settings)).encode(), "application/vnd.oci.image.config.v1+json")
    manifest = {"schemaVersion": 2, "config": made, "layers": described}
    listed = add(files, json.dumps(manifest).encode(), MANIFEST)
    listed["annotations"] = {"org.opencontainers.image.ref.name": tag}
    files["index.json"] = json.dumps({"schemaVersion": 2, "manifests": [listed]}).encode()
    return files


def add(files: dict[str, bytes], data: bytes, media_type: str) -> dict[str, Any]:
    """Add a blob; its descriptor."""
    digest = sha256(data)
    files["blobs/" + digest.replace(":", "/")] = data
    return {"mediaType": media_type, "digest": digest, "size": len(data)}


def saved(layers: list[bytes], **settings: Any) -> dict[str, bytes]:
    """The files of an archive as older versions of `docker save` wrote them."""
    files = {f"{sha256(each)[7:]}/layer.tar": each for each in layers}
    made = json.dumps(config(layers, **settings)).encode()
    name = f"{sha256(made)[7:]}.json"
    files[name] = made
    listed = {"Config": name, "RepoTags": ["app:1"], "Layers": [f"{sha256(each)[7:]}/layer.tar" for each in layers]}
    files["manifest.json"] = json.dumps([listed]).encode()
    return files


def write_tar(path: Path, files: Mapping[str, bytes], how: str = "") -> Path:
    data = layer(*(entry(name, content) for name, content in files.items()))
    path.write_bytes(pack(data, how)[0])
    return path


def write_directory(path: Path, files: Mapping[str, bytes]) -> Path:
    for name, data in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return path
