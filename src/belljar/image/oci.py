"""OCI layouts and archives of `docker save`, read: manifest, layers and settings, with every digest checked.

Formats: https://github.com/opencontainers/image-spec (1.0 and 1.1), and the `manifest.json` of `docker save`. A layout
is read twice: first everything is checked and nothing is written, then the contents that the image needs are stored.
"""

from __future__ import annotations

import hashlib
import logging
import lzma
import re
import zlib
from collections.abc import Iterator, Sequence
from typing import IO, Any, Final, Protocol, TypeVar

import msgspec
from msgspec import Struct

from belljar.abi.errors import ImageError
from belljar.abi.limits import MIB
from belljar.abi.paths import fsencode
from belljar.image.layer import Meter, apply_layer, members
from belljar.image.record import ImageRecord, make_image
from belljar.image.tree import FileTree, pieces, show
from belljar.kernel.fs.archive import ArchiveError, unpack
from belljar.store.objects import Digest
from belljar.store.store import Objects

LAYOUT_VERSION: Final = "1.0.0"
INDEX_TYPE: Final = "application/vnd.oci.image.index.v1+json"
MANIFEST_TYPE: Final = "application/vnd.oci.image.manifest.v1+json"
CONFIG_TYPE: Final = "application/vnd.oci.image.config.v1+json"
LAYER_TYPE: Final = "application/vnd.oci.image.layer.v1.tar"
REF_NAME: Final = "org.opencontainers.image.ref.name"

_INDEX_TYPES: Final = (INDEX_TYPE, "application/vnd.docker.distribution.manifest.list.v2+json")
_MANIFEST_TYPES: Final = (MANIFEST_TYPE, "application/vnd.docker.distribution.manifest.v2+json")
_LAYER: Final = re.compile(
    r"|application/vnd\.oci\.image\.layer(\.nondistributable)?\.v1\.tar(\+gzip|\+zstd)?"
    r"|application/vnd\.docker\.image\.rootfs(\.foreign)?\.diff\.tar(\.gzip|\.zstd)?"
)
_JSON_MAX: Final = 4 * MIB
"""Bytes of the largest manifest or configuration."""
_LAYERS_MAX: Final = 1000
_NESTED_MAX: Final = 4
_SHOWN_MAX: Final = 20
_CHUNK: Final = MIB
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_HEX: Final = re.compile(r"[0-9a-f]{64}")
_BROKEN: Final = (zlib.error, lzma.LZMAError, EOFError, OSError, ValueError)


class Layout(Protocol):
    """Files by name, of a directory or an archive."""

    def open(self, name: str) -> IO[bytes]:
        """A seekable file. ImageError if there is none."""

    def has(self, name: str) -> bool: ...


class _Platform(Struct):
    architecture: str = ""
    os: str = ""


class _Descriptor(Struct, rename={"media_type": "mediaType"}):
    digest: str
    size: int
    media_type: str = ""
    platform: _Platform | None = None
    annotations: dict[str, str] | None = None


class _Index(Struct, rename={"version": "schemaVersion"}):
    version: int
    manifests: list[_Descriptor]


class _Manifest(Struct, rename={"version": "schemaVersion"}):
    version: int
    config: _Descriptor
    layers: list[_Descriptor]


class _Saved(Struct, rename="pascal"):
    """An image in the `manifest.json` of `docker save`."""

    config: str
    layers: list[str]
    repo_tags: list[str] | None = None


class _Settings(Struct, rename="pascal"):
    user: str | None = None
    env: list[str] | None = None
    entrypoint: list[str] | None = None
    cmd: list[str] | None = None
    working_dir: str | None = None


class _RootFs(Struct):
    type: str
    diff_ids: list[str]


class _History(Struct):
    created_by: str = ""


class _Config(Struct):
    rootfs: _RootFs
    os: str = "linux"
    config: _Settings | None = None
    history: list[_History] | None = None


class _Version(Struct, rename={"version": "imageLayoutVersion"}):
    version: str


_Json = TypeVar("_Json")
_Layers = list[tuple[str, int, str]]
"""The file of each layer, its size and digest as stated (-1, "": not stated)."""


def read_image(layout: Layout, objects: Objects, tag: str | None = None) -> tuple[ImageRecord, str]:
    """Store the files of an image; its record, which is not stored yet, and the name that the archive gives it, without
    the tag "latest" ("": none).

    ImageError, with nothing stored, for anything that is not a whole and sound image.
    """
    config, layers, name = _find(layout, tag)
    if config.os != "linux":
        raise ImageError(f"the image is for {config.os!r}: only images for Linux can be read")
    if config.rootfs.type != "layers" or len(config.rootfs.diff_ids) != len(layers):
        raise ImageError("the image's configuration does not fit its layers")
    if len(layers) > _LAYERS_MAX:
        raise ImageError(f"the image has {len(layers)} layers: the most is {_LAYERS_MAX}")
    tree, meter = FileTree(), Meter()
    for (file, size, digest), expected in zip(layers, config.rootfs.diff_ids, strict=True):
        with layout.open(file) as blob:
            _check_blob(blob, size, digest)
            sum_ = hashlib.sha256()
            apply_layer(tree, unpacked(blob, meter, sum_), meter)
        if "sha256:" + sum_.hexdigest() != expected:
            raise ImageError(
                f"layer {show(fsencode(file))}: its contents have another digest than the configuration says"
            )
    stored, directories = tree.save()
    record = make_image(stored, tree.size, **_settings(config))
    needed = {part for node in tree.files() for part in node.parts if part}
    objects.write(_contents(layout, [file for file, _, _ in layers], needed))
    if needed:
        raise ImageError("the image was changed while it was read")
    objects.write(directories)
    warn_skipped(meter.skipped)
    return record, "" if name == "latest" else name.removesuffix(":latest")


def warn_skipped(names: Sequence[str]) -> None:
    """Tell the owner of device nodes and sockets that were left out of an image."""
    if names:
        shown = ", ".join(names[:_SHOWN_MAX]) + (f" and {len(names) - _SHOWN_MAX} more" if names[_SHOWN_MAX:] else "")
        logging.getLogger("belljar").warning("left out of the image, which can't have device nodes: %s", shown)


def _contents(layout: Layout, files: list[str], needed: set[Digest]) -> Iterator[bytes]:
    """The pieces that are needed, taken from the set as they are found."""
    meter = Meter()
    for file in files:
        with layout.open(file) as blob:
            for member, data, _ in members(unpacked(blob, meter), meter):
                if member.is_regular:
                    for digest, piece in pieces(data):
                        if digest in needed:
                            needed.remove(digest)
                            yield piece


def unpacked(blob: IO[bytes], meter: Meter, sum_: Any = None) -> Iterator[bytes]:
    """The bytes of a layer, uncompressed, counted and hashed."""
    try:
        size = blob.seek(0, 2)
        meter.begin(size)
        stream = unpack(blob)
        while data := stream.read(_CHUNK):
            meter.add(len(data))
            if sum_ is not None:
                sum_.update(data)
            yield data
    except ArchiveError as error:
        raise ImageError(str(error)) from None
    except _BROKEN as error:
        raise ImageError(f"a layer can't be unpacked: {str(error) or type(error).__name__}") from None


def _find(layout: Layout, tag: str | None) -> tuple[_Config, _Layers, str]:
    """The configuration and the layers of the image that is asked for."""
    if layout.has("oci-layout"):
        version = _parse(_read(layout, "oci-layout"), _Version, "oci-layout").version
        if version != LAYOUT_VERSION:
            raise ImageError(f"the layout is of version {version[:20]!r}: this belljar knows {LAYOUT_VERSION!r}")
        return _find_oci(layout, tag)
    if layout.has("manifest.json"):
        return _find_saved(layout, tag)
    raise ImageError("this is no image: it has neither an `oci-layout` nor a `manifest.json` of `docker save`")


def _find_oci(layout: Layout, tag: str | None) -> tuple[_Config, _Layers, str]:
    index = _parse(_read(layout, "index.json"), _Index, "index.json")
    names = {(each.annotations or {}).get(REF_NAME, ""): each for each in index.manifests}
    if tag is not None:
        names = {name: each for name, each in names.items() if name == tag or name.endswith(f":{tag}")}
    if len(names) != 1 or (tag is None and len(index.manifests) != 1):
        raise _choose(tag, sorted(names))
    ((name, chosen),) = names.items()
    for _ in range(_NESTED_MAX):
        data = _read_blob(layout, chosen)
        if chosen.media_type not in _INDEX_TYPES:
            break
        index = _check_version(_parse(data, _Index, "an index"))
        chosen = _choose_platform(index.manifests)
    else:
        raise ImageError("the image's indexes are nested too deep")
    if chosen.media_type not in _MANIFEST_TYPES:
        raise ImageError(f"a manifest of an unknown type: {chosen.media_type[:100]!r}")
    manifest = _check_version(_parse(data, _Manifest, "a manifest"))
    config = _parse(_read_blob(layout, manifest.config), _Config, "the image's configuration")
    for layer in manifest.layers:
        if not _LAYER.fullmatch(layer.media_type):
            raise ImageError(f"a layer of an unknown type: {layer.media_type[:100]!r}")
    layers = [(_blob_name(layer.digest), layer.size, layer.digest) for layer in manifest.layers]
    return config, layers, _whole_name(layout, name)


def _whole_name(layout: Layout, tag: str) -> str:
    """The name that `manifest.json` has for a tag, if there is one: the index of a layout often says the tag alone."""
    if not layout.has("manifest.json"):
        return tag
    try:
        saved = _parse(_read(layout, "manifest.json"), list[_Saved], "manifest.json")
    except ImageError:  # a layout may have other files, of any kind
        return tag
    names = [name for each in saved for name in each.repo_tags or [] if name.endswith(f":{tag}")]
    return names[0] if len(names) == 1 else tag


def _find_saved(layout: Layout, tag: str | None) -> tuple[_Config, _Layers, str]:
    saved = _parse(_read(layout, "manifest.json"), list[_Saved], "manifest.json")
    names = {name: each for each in saved for name in each.repo_tags or [""]}
    if tag is not None:
        names = {name: each for name, each in names.items() if name == tag or name.endswith(f":{tag}")}
    if len({id(each) for each in names.values()}) != 1 or (tag is None and len(saved) != 1):
        raise _choose(tag, sorted(names))
    name, chosen = next(iter(names.items()))
    data = _read(layout, chosen.config)
    stated = chosen.config.rpartition("/")[2].removesuffix(".json")
    if _HEX.fullmatch(stated) and hashlib.sha256(data).hexdigest() != stated:
        raise ImageError("the image's configuration has another digest than its name says")
    config = _parse(data, _Config, "the image's configuration")
    return config, [(file, -1, "") for file in chosen.layers], name


def _choose(tag: str | None, names: list[str]) -> ImageError:
    if tag is not None:
        return ImageError(f"the archive has no one image called {tag!r}")
    shown = ", ".join(repr(name[:100]) for name in names[:20]) or "none"
    return ImageError(f"the archive has several images, or none: choose one by tag= ({shown})")


def _choose_platform(manifests: list[_Descriptor]) -> _Descriptor:
    """The one for linux/amd64, else the first for Linux: the same on every machine."""
    linux = [each for each in manifests if each.platform is None or each.platform.os == "linux"]
    if not linux:
        raise ImageError("the image has nothing for Linux")
    return next((each for each in linux if each.platform and each.platform.architecture == "amd64"), linux[0])


def _check_version(found: _Json) -> _Json:
    version = getattr(found, "version", 0)
    if version != 2:
        raise ImageError(f"a manifest of schema version {version}: this belljar knows version 2")
    return found


def _parse(data: bytes, type_: type[_Json], what: str) -> _Json:
    try:
        return msgspec.json.decode(data, type=type_)
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError, UnicodeError) as error:
        raise ImageError(f"{what} can't be read: {str(error)[:200]}") from None


def _read(layout: Layout, name: str) -> bytes:
    with layout.open(name) as file:
        try:
            data = file.read(_JSON_MAX + 1)
        except _BROKEN as error:
            raise ImageError(f"{show(fsencode(name))} can't be read: {error}") from None
    if len(data) > _JSON_MAX:
        raise ImageError(f"{show(fsencode(name))} has more than {_JSON_MAX} bytes")
    return data


def _read_blob(layout: Layout, descriptor: _Descriptor) -> bytes:
    data = _read(layout, _blob_name(descriptor.digest))
    if len(data) != descriptor.size or "sha256:" + hashlib.sha256(data).hexdigest() != descriptor.digest:
        raise ImageError(f"the blob {descriptor.digest} has another size or digest")
    return data


def _check_blob(blob: IO[bytes], size: int, digest: str) -> None:
    """Check a layer's own bytes before anything of them is believed."""
    if not digest:
        return
    sum_, found = hashlib.sha256(), 0
    try:
        while data := blob.read(_CHUNK):
            sum_.update(data)
            found += len(data)
    except _BROKEN as error:
        raise ImageError(f"the blob {digest} can't be read: {error}") from None
    if found != size or "sha256:" + sum_.hexdigest() != digest:
        raise ImageError(f"the blob {digest} has another size or digest")


def _blob_name(digest: str) -> str:
    if not _DIGEST.fullmatch(digest):
        raise ImageError(f"{digest[:100]!r} is no digest that this belljar knows: it must be by sha256")
    return "blobs/sha256/" + digest.removeprefix("sha256:")


def _settings(config: _Config) -> dict[str, Any]:
    """What an image's configuration says of its sandboxes."""
    given = config.config or _Settings()
    env: dict[str, str] = {}
    for each in given.env or []:
        name, equals, value = each.partition("=")
        if not name or not equals or "\0" in each:
            raise ImageError(f"the image's environment has {each[:100]!r}")
        env[name] = value
    return {
        "env": env,
        "cwd": given.working_dir or "/",
        "user": given.user or "root",
        "command": [*(given.entrypoint or []), *(given.cmd or [])],
        "history": [each.created_by for each in config.history or []],
    }
