"""Opens what lives on the owner's machine and is to be mounted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from belljar.abi.errors import SysError
from belljar.abi.records import Owner
from belljar.api.errors import SandboxCreationError
from belljar.kernel.fs.archive import ArchiveError, ArchiveServer
from belljar.kernel.fs.fsspec_host import FsspecServer
from belljar.kernel.fs.hostdir_host import HostDirServer
from belljar.kernel.vfs.server import FileServer


def open_host_directory(path: str, *, read_only: bool, owner: Owner) -> FileServer:
    try:
        return HostDirServer(path, read_only=read_only, owner=owner)
    except (OSError, SysError) as error:
        raise SandboxCreationError(f"can't mount {path!r}: {error}. It must be an existing directory.") from error


def open_archive(path: str, *, owner: Owner) -> FileServer:
    try:
        return ArchiveServer(Path(path).open("rb"), owner=owner)
    except (OSError, ArchiveError) as error:
        raise SandboxCreationError(f"can't mount the archive {path!r}: {error}") from error


def open_fsspec(url: str, *, read_only: bool, owner: Owner, options: dict[str, Any]) -> FileServer:
    try:
        return FsspecServer(url, read_only=read_only, owner=owner, options=options)
    except (ImportError, ValueError, OSError) as error:
        raise SandboxCreationError(f"can't mount {url!r}: {error}") from error
