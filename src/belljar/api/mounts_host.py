"""Opens what lives on the owner's machine and is to be mounted. Loads what a mount needs when there is one."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from belljar.abi.errors import SysError
from belljar.abi.records import Owner
from belljar.api.errors import SandboxCreationError
from belljar.kernel.vfs.server import FileServer

if TYPE_CHECKING:
    from belljar.kernel.fs.protection import Trust


def open_host_directory(path: str, *, read_only: bool, owner: Owner, trust: Trust = False) -> FileServer:
    if sys.platform != "linux":
        raise SandboxCreationError(
            f"can't mount {path!r}: a host directory is opened by openat2, which only Linux has. "
            "Use files= or sandbox.files.upload() instead."
        )
    from belljar.kernel.fs.hostdir_host import HostDirServer

    try:
        return HostDirServer(path, read_only=read_only, owner=owner, trust=trust)
    except (OSError, SysError) as error:
        raise SandboxCreationError(f"can't mount {path!r}: {error}. It must be an existing directory.") from error


def find_node_modules(project: str) -> str:
    """The `node_modules` of a project's directory. SandboxCreationError."""
    if os.path.basename(os.path.abspath(project)) == "node_modules" and os.path.isdir(project):
        return project
    found = os.path.join(project, "node_modules")
    if not os.path.isdir(found):
        raise SandboxCreationError(f"node_modules={project!r}: there is no directory {found}. Run `npm install` there.")
    return found


def open_archive(path: str, *, owner: Owner) -> FileServer:
    from belljar.kernel.fs.archive import ArchiveError, ArchiveServer

    try:
        file = open(path, "rb")  # noqa: SIM115 - it is read from as long as it is mounted
        try:
            return ArchiveServer(file, owner=owner)
        except BaseException:
            file.close()
            raise
    except (OSError, ArchiveError) as error:
        raise SandboxCreationError(f"can't mount the archive {path!r}: {error}") from error


def open_fsspec(url: str, *, read_only: bool, owner: Owner, options: dict[str, Any]) -> FileServer:
    from belljar.kernel.fs.fsspec_host import FsspecServer

    try:
        return FsspecServer(url, read_only=read_only, owner=owner, options=options)
    except (ImportError, ValueError, OSError) as error:
        raise SandboxCreationError(f"can't mount {url!r}: {error}") from error
