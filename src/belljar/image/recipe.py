"""The steps of a recipe as data, and the keys under which their results are cached: equal keys, equal results."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct, msgpack

from belljar.image.record import ImageRecord
from belljar.store.objects import Digest, Record, digest_of, encode_record
from belljar.store.snapshot import IMAGE, move_ref
from belljar.store.store import Objects
from belljar.store.tree import links_of

STEP: Final = "step/"
"""Refs with this prefix name the images that steps made, by the keys of the steps."""
STEPS: Final = "steps/"
"""Refs with this prefix name the lists of the steps that images were made by, by the digests of the images."""


class Files(Struct, frozen=True, tag=True):
    """Files with these contents and modes, by their paths."""

    files: tuple[tuple[str, bytes, int], ...]

    def __str__(self) -> str:
        names = ", ".join(path for path, _, _ in self.files[:3])
        return f"files {names}" + (f" and {len(self.files) - 3} more" if len(self.files) > 3 else "")


class Copy(Struct, frozen=True, tag=True):
    """A file or a directory of the host's."""

    source: str
    target: str

    def __str__(self) -> str:
        return f"copy {self.source} {self.target}"


class Run(Struct, frozen=True, tag=True):
    """A command: bash runs a str, a tuple is argv."""

    command: str | tuple[str, ...]

    def __str__(self) -> str:
        return f"run {self.command if isinstance(self.command, str) else shlex.join(self.command)}"


class Env(Struct, frozen=True, tag=True):
    """Variables of every command from here on."""

    variables: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return "env " + " ".join(f"{name}={shlex.quote(value)}" for name, value in self.variables)


class Cwd(Struct, frozen=True, tag=True):
    """The working directory from here on; made if it is missing."""

    path: str

    def __str__(self) -> str:
        return f"cwd {self.path}"


class User(Struct, frozen=True, tag=True):
    """Who commands run as from here on."""

    name: str

    def __str__(self) -> str:
        return f"user {self.name}"


class Command(Struct, frozen=True, tag=True):
    """The command of sandboxes that are told no other."""

    argv: tuple[str, ...]

    def __str__(self) -> str:
        return f"command {self.argv[2] if self.argv[:2] == ('bash', '-c') else shlex.join(self.argv)}"


class Service(Struct, frozen=True, tag=True):
    """A program that sandboxes keep running; `text` is its description, which belongs in /etc/init."""

    name: str
    text: str

    def __str__(self) -> str:
        return f"service {self.name}"


class Debian(Struct, frozen=True, tag=True):
    """A system made of Debian packages, which replaces all that was there before."""

    suite: str
    packages: tuple[str, ...]
    mirror: str = ""
    keyring: str = ""
    trusted: bool = False
    configure: bool = True
    architecture: str = ""

    def __str__(self) -> str:
        return " ".join(("debian", self.suite, *self.packages))


Step = Files | Copy | Run | Env | Cwd | User | Command | Service | Debian

_encoder: Final = msgpack.Encoder()


def history_line(step: Step) -> str:
    """A step for an image's history, which is part of its digest: it does not say where files were on the host."""
    return f"copy {step.target}" if isinstance(step, Copy) else str(step)


def step_key(
    version: str, parent: ImageRecord | None, step: Step | str, *, network: bool = False, native: bool = False
) -> str:
    """The ref of what a step makes of an image: it depends on the files and the settings before it, on the step, on the
    version of belljar, on whether there is a network, and on the tier.
    """
    before: Sequence[object] = () if parent is None else (parent.trees, parent.env, parent.cwd, parent.user)
    key: Digest = digest_of(_encoder.encode([version, before, step, network, *(["native"] if native else [])]))
    return STEP + key.hex()


def keep_steps(objects: Objects, image: Digest, steps: Iterable[Digest]) -> None:
    """Note which cached steps an image was made by: they are kept as long as it is."""
    links = sorted(set(steps))
    if links:
        (record,) = objects.write([encode_record(Record("steps", links, b""))])
        move_ref(objects.backend, STEPS + image.hex(), record)


def forget_steps(objects: Objects) -> None:
    """Forget cached steps that no image was made by, once images were removed."""
    store = objects.backend
    images = {digest.hex() for digest in store.list(IMAGE).values()}
    kept: set[Digest] = set()
    for ref, digest in store.list(STEPS).items():
        if ref.removeprefix(STEPS) in images:
            kept |= links_of(objects.read([digest])[0])
        else:
            store.delete(ref, digest)
    for ref, digest in store.list(STEP).items():
        if digest not in kept:
            store.delete(ref, digest)
