"""Images as records of a store: a tree, and the settings of the sandboxes made from it. `image/NAME` names one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import DecodeError, Struct, ValidationError, msgpack, structs

from belljar.abi.errors import ImageError, SnapshotError
from belljar.abi.paths import fsdecode, fsencode, normalise
from belljar.store.errors import StoreError
from belljar.store.objects import Digest
from belljar.store.snapshot import (
    IMAGE,
    PREFIX_MIN,
    SHA256,
    SnapshotRecord,
    Tree,
    encode_snapshot,
    move_ref,
    read_snapshot,
    ref_of,
)
from belljar.store.store import Objects, Store, check_name

ImageRecord = SnapshotRecord
_TEXTS_MAX: Final = 1000


class ImageConfig(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Settings of an image that a snapshot has not."""

    command: list[str] = []
    """What `belljar image run` runs if it is told nothing else."""
    history: list[str] = []
    """The steps it was made by, as text for people."""


_encoder: Final = msgpack.Encoder()
_decoder: Final = msgpack.Decoder(ImageConfig)


def make_image(
    tree: Tree,
    size: int,
    *,
    env: Mapping[str, str],
    cwd: str,
    user: str,
    command: Sequence[str] = (),
    history: Sequence[str] = (),
) -> ImageRecord:
    """The record of an image. ImageError for settings that make no sense."""
    if not cwd.startswith("/"):
        raise ImageError(f"the working directory of an image is an absolute path, not {cwd[:200]!r}")
    if len(command) > _TEXTS_MAX or len(history) > 10 * _TEXTS_MAX:
        raise ImageError("the image has a command or a history that is too long")
    record = ImageRecord(
        created=0,
        trees=[tree],
        env=sorted((fsencode(name), fsencode(value)) for name, value in env.items()),
        cwd=fsencode(normalise(cwd)),
        user=user,
        size=size,
        config=_encoder.encode(ImageConfig(list(command), list(history))),
    )
    try:
        encode_snapshot(record, "image")
    except SnapshotError as error:
        raise ImageError(str(error)) from None
    return record


def with_config(record: ImageRecord, config: ImageConfig) -> ImageRecord:
    return structs.replace(record, config=_encoder.encode(config))


def config_of(record: ImageRecord) -> ImageConfig:
    try:
        return _decoder.decode(record.config)
    except (DecodeError, ValidationError) as error:
        raise ImageError(f"the image can't be read: {error}") from None


def environment_of(record: ImageRecord) -> dict[str, str]:
    return {fsdecode(name): fsdecode(value) for name, value in record.env}


def save_image(objects: Objects, record: ImageRecord, name: str | None) -> Digest:
    """Keep an image whose files are in the store already, under its name or its digest. Durable at return."""
    if name is not None:
        check_image_name(name)
    (digest,) = objects.write([encode_snapshot(record, "image")])
    move_ref(objects.backend, IMAGE + (name or ref_of(digest)), digest)
    return digest


def check_image_name(name: str) -> str:
    """ImageError for what can't name an image."""
    if not name or not isinstance(name, str):
        raise ImageError(f"an image's name is a text that is not empty, not {name!r}")
    try:
        check_name(IMAGE + name)
    except StoreError as error:
        raise ImageError(str(error)) from None
    if name.startswith(SHA256) or name == "base":
        raise ImageError(f"{name!r} can't name an image: it means another one already")
    return name


def is_image_name(name: str) -> bool:
    try:
        check_image_name(name)
    except ImageError:
        return False
    return True


def find_image(store: Store, text: str) -> Digest:
    """The image that a name, a digest with "sha256:", or the first digits of a digest mean. ImageError."""
    if not isinstance(text, str):
        raise TypeError(f"an image is found by its name or digest, not {text!r}")
    found = store.get(IMAGE + text) if not text.startswith(SHA256) else None
    if found is not None:
        return found
    digits = text.removeprefix(SHA256).lower()
    if digits and not digits.strip("0123456789abcdef"):
        if len(digits) == 64:
            return bytes.fromhex(digits)
        some = {digest for digest in store.list(IMAGE).values() if digest.hex().startswith(digits)}
        if len(digits) >= PREFIX_MIN and len(some) == 1:
            return some.pop()
    if text == "base":
        raise ImageError("the image 'base' is built in, in no store: it is what every sandbox has, and what Image() is")
    raise ImageError(f"there is no image {text[:200]!r}: build it first (`belljar image ls` lists those there are)")


def read_image_record(objects: Objects, digest: Digest) -> ImageRecord:
    """ImageError if the store has no such image, or it can't be read."""
    try:
        return read_snapshot(objects, digest, "image")
    except SnapshotError as error:
        raise ImageError(f"{error}: `belljar image ls` lists the images there are") from None
