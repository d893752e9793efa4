"""Directories of this machine that are volumes: shared by sandboxes, and there after a crash as a disk is."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from belljar.api.mounts import Mount


class VolumeDirectories:
    def __init__(self, directory: str | None) -> None:
        """`directory` None: one that goes with this object."""
        self._own = None if directory is not None else tempfile.mkdtemp(prefix="belljar-volumes-")
        self._directory = Path(directory or self._own or "")

    def close(self) -> None:
        if self._own is not None:
            shutil.rmtree(self._own, ignore_errors=True)

    def create(self, number: str) -> None:
        (self._directory / number).mkdir(mode=0o700, parents=True)

    def remove(self, number: str) -> None:
        shutil.rmtree(self._directory / number, ignore_errors=True)

    def used(self, number: str) -> int:
        """Bytes of all files."""
        size = 0
        for directory, _, names in os.walk(self._directory / number):
            size += sum(os.lstat(os.path.join(directory, name)).st_size for name in names)
        return size

    def mount(self, number: str, max_bytes: int) -> Mount:
        """For one sandbox, which may add so much to it. Nothing on this machine runs what is in it."""
        path = str(self._directory / number)
        room = max(0, max_bytes - self.used(number))
        return Mount.host(path, read_only=False, trust=True, max_bytes=room)
