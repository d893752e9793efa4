"""Archives that clients upload for the templates they build: on disk until they were not used for a day."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from belljar.abi.clock import Clock

_HASH: Final = re.compile(r"[0-9a-f]{16,128}")
_KEPT_SECONDS: Final = 86400.0


def is_hash(text: str) -> bool:
    return _HASH.fullmatch(text) is not None


class Uploads:
    def __init__(self, directory: str | None, clock: Clock) -> None:
        """`directory` None: one that goes with this object."""
        self._clock = clock
        self._own = None if directory is not None else tempfile.mkdtemp(prefix="belljar-uploads-")
        self._directory = Path(directory if directory is not None else self._own or "")

    def close(self) -> None:
        if self._own is not None:
            shutil.rmtree(self._own, ignore_errors=True)

    def _place(self, tenant: str, number: str) -> Path:
        return self._directory / sha256(tenant.encode()).hexdigest()[:32] / f"{number}.tar"

    def find(self, tenant: str, number: str) -> str | None:
        """The path of an archive that is there; it is kept for another day."""
        place = self._place(tenant, number) if is_hash(number) else None
        if place is None or not place.is_file():
            return None
        self._touch(place)
        return str(place)

    def size(self, tenant: str) -> int:
        """Bytes of all archives of a tenant."""
        return sum(path.stat().st_size for path in self._place(tenant, "x").parent.glob("*.tar"))

    async def write(self, tenant: str, number: str, body: AsyncIterator[bytes]) -> None:
        """Keep an archive once all of it is here. OSError."""
        place = self._place(tenant, number)
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._forget_old(place.parent)
        descriptor, name = tempfile.mkstemp(dir=place.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                async for piece in body:
                    file.write(piece)
            self._touch(name)
            os.replace(name, place)
        except BaseException:
            os.unlink(name)
            raise

    def _touch(self, path: str | Path) -> None:
        now = self._clock.time()
        os.utime(path, (now, now))

    def _forget_old(self, directory: Path) -> None:
        for path in directory.iterdir():
            with suppress(OSError):
                if path.stat().st_mtime < self._clock.time() - _KEPT_SECONDS:
                    path.unlink()
