"""Trees to mount into a sandbox: `Mount`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct

from belljar.abi.errno import EDQUOT
from belljar.abi.flags import FILE_MAX
from belljar.abi.records import Owner
from belljar.abi.wire import Plain
from belljar.api.mounts_host import open_archive, open_fsspec, open_host_directory
from belljar.api.request import FileContents, check_contents, check_path
from belljar.kernel.fs.quota import Quota
from belljar.kernel.fs.remote_export import complete
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
    def host(
        cls,
        path: str,
        read_only: bool = True,
        *,
        trust: Trust = False,
        max_bytes: int | None = None,
        max_files: int | None = None,
    ) -> Mount:
        """A directory of your machine. Nothing outside it can be reached through it.

        The sandbox may add `max_bytes` to it, and `max_files` names; more is EDQUOT there.

        For writing, some files are kept as they are: those that make your machine run something by themselves. `trust`
        takes away rules ("git", "editor" ...) or paths of that list, or all of it (True); see docs/mounts.md.
        """
        from belljar.kernel.fs.protection import check_trust

        check_trust(trust)
        limit = check_quota(read_only, max_bytes, max_files)

        def build(export: Export) -> Plain:
            server = open_host_directory(path, read_only=read_only, owner=AGENT, trust=trust)
            return [b"remote", export(limit(server), True)]

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
    def fsspec(
        cls,
        url: str,
        read_only: bool = True,
        *,
        max_bytes: int | None = None,
        max_files: int | None = None,
        **options: Any,
    ) -> Mount:
        """Anything fsspec can open: s3://bucket/prefix, gcs://, zip://, https://. Limits as in `host`."""
        limit = check_quota(read_only, max_bytes, max_files)

        def build(export: Export) -> Plain:
            server = open_fsspec(url, read_only=read_only, owner=AGENT, options=options)
            return [b"remote", export(limit(server), True)]

        return cls(build, read_only=read_only)

    @classmethod
    def server(
        cls,
        server: FileServer,
        read_only: bool = False,
        *,
        max_bytes: int | None = None,
        max_files: int | None = None,
    ) -> Mount:
        """A file server of yours: any object with the methods of `FileServer`. It runs in your process.

        What it does not have is refused as on a read-only disk. TypeError for what can't even be read. Limits as in
        `host`.
        """
        lacking = [name for name in NEEDED if not hasattr(server, name)]
        if lacking:
            raise TypeError(f"{type(server).__name__} is no file server: it has no {', '.join(lacking)}")
        limit = check_quota(read_only, max_bytes, max_files)
        return cls(lambda export: [b"remote", export(limit(server), False)], read_only=read_only)


def check_quota(read_only: bool, max_bytes: int | None, max_files: int | None) -> Callable[[FileServer], FileServer]:
    """Gives a server its quota. TypeError, ValueError."""
    given = {name: value for name, value in (("max_bytes", max_bytes), ("max_files", max_files)) if value is not None}
    for name, value in given.items():
        if type(value) is not int:
            raise TypeError(f"{name}= takes an int, not {type(value).__name__}")
        if value < 0:
            raise ValueError(f"{name}={value} is negative")
    if given and read_only:
        raise ValueError(f"{' and '.join(given)} limit what is written: a read-only mount has no such limit")

    def limit(server: FileServer) -> FileServer:
        if not given:
            return server
        from belljar.kernel.fs.limited import LimitedServer  # most mounts have no limit

        quota = Quota(given.get("max_bytes", FILE_MAX), given.get("max_files", FILE_MAX), EDQUOT)
        return cast("FileServer", LimitedServer(complete(server), quota))

    return limit


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
