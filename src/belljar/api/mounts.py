"""Trees to mount into a sandbox: `Mount`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from belljar.abi.records import Owner
from belljar.abi.wire import Plain
from belljar.api.mounts_host import open_archive, open_fsspec, open_host_directory
from belljar.api.request import FileContents, check_contents, check_path
from belljar.kernel.vfs.server import FileServer

if TYPE_CHECKING:
    from belljar.kernel.fs.protection import Trust

AGENT = Owner(1000, 1000)

NEEDED = ("root", "walk", "locate", "stat", "readdir", "open")
"""Methods that a server must have to be read."""

Export = Callable[[FileServer, bool], int]
"""Offers a server of this process to the sandbox; gives the number the sandbox knows it by."""


class Mount(Struct, frozen=True):
    """A tree to appear in a sandbox. Make one with the class methods; missing mount points are created.

    >>> Sandbox(mounts={"/data": Mount.host("./data"), "/work": Mount.overlay(Mount.host("./repo"))})
    """

    build: Callable[[Export], Plain]
    """Opens what is needed on this side; gives the recipe for the sandbox's side."""
    read_only: bool = False
    files: tuple[tuple[str, bytes, int | None], ...] = ()

    @classmethod
    def memory(cls, files: Mapping[str, FileContents] | None = None) -> Mount:
        """A new, empty tree in the sandbox's memory, or one with these files."""
        contents = tuple((path, *check_contents(path, value)) for path, value in (files or {}).items())
        return cls(lambda _export: [b"memory"], files=contents)

    @classmethod
    def host(cls, path: str, read_only: bool = True, *, trust: Trust = False) -> Mount:
        """A directory of your machine. Nothing outside it can be reached through it.

        For writing, some files are kept as they are: those that make your machine run something by themselves. `trust`
        takes away rules ("git", "editor" ...) or paths of that list, or all of it (True); see docs/mounts.md.
        """
        from belljar.kernel.fs.protection import check_trust

        check_trust(trust)

        def build(export: Export) -> Plain:
            return [b"remote", export(open_host_directory(path, read_only=read_only, owner=AGENT, trust=trust), True)]

        return cls(build, read_only=read_only)

    @classmethod
    def overlay(cls, lower: Mount, upper: Mount | None = None) -> Mount:
        """`lower` as it is, with every change kept apart: in `upper`, or in the sandbox's memory."""
        given: tuple[object, ...] = (lower,) if upper is None else (lower, upper)
        for layer in given:
            if not isinstance(layer, Mount):
                raise TypeError(f"an overlay is made of Mounts, such as Mount.host(...), not {type(layer).__name__}")
        if lower.files and upper is not None:
            raise ValueError("of an overlay's two trees only the upper one may begin with files: give them to that")

        def build(export: Export) -> Plain:
            return [b"overlay", lower.build(export), None if upper is None else upper.build(export)]

        # What a tree in memory begins with is written once it is mounted, which here means to the upper one.
        return cls(build, files=lower.files + (() if upper is None else upper.files))

    @classmethod
    def archive(cls, path: str) -> Mount:
        """A tar or zip file, read-only."""
        return cls(lambda export: [b"remote", export(open_archive(path, owner=AGENT), True)], read_only=True)

    @classmethod
    def fsspec(cls, url: str, read_only: bool = True, **options: Any) -> Mount:
        """Anything fsspec can open: s3://bucket/prefix, gcs://, zip://, https://."""

        def build(export: Export) -> Plain:
            return [b"remote", export(open_fsspec(url, read_only=read_only, owner=AGENT, options=options), True)]

        return cls(build, read_only=read_only)

    @classmethod
    def server(cls, server: FileServer, read_only: bool = False) -> Mount:
        """A file server of yours: any object with the methods of `FileServer`. It runs in your process.

        What it does not have is refused as on a read-only disk. TypeError for what can't even be read.
        """
        lacking = [name for name in NEEDED if not hasattr(server, name)]
        if lacking:
            raise TypeError(f"{type(server).__name__} is no file server: it has no {', '.join(lacking)}")
        return cls(lambda export: [b"remote", export(server, False)], read_only=read_only)


def check_mount(path: object, mount: object) -> str:
    """Where it is to be mounted. TypeError, ValueError for what can't be, or not there."""
    path = check_path(path, "where to mount")
    if not isinstance(mount, Mount):
        names_a_path = isinstance(mount, str) or hasattr(mount, "__fspath__")
        made = f"Mount.host({mount!r})" if names_a_path else "Mount.memory, Mount.host ..."
        raise TypeError(f"what is mounted at {path!r} must be a Mount, not {type(mount).__name__}: make one by {made}")
    if not path.startswith("/") or path == "/":
        raise ValueError(f"can't mount at {path!r}: an absolute path other than / is needed")
    return path
