"""The times since when files of a store of packs are condemned."""

from __future__ import annotations

from contextlib import suppress

from belljar.store.files_host import Files


class Marks:
    """The files condemned/NAME: the time of the collection that first found that NAME is not needed."""

    def __init__(self, files: Files, now: float, grace: float) -> None:
        self._files = files
        self._now = now
        self._grace = grace
        paths = {f"condemned/{name}": name for name in files.names("condemned")}
        self._since = {paths[path]: _read_time(data) for path, data in files.read(list(paths)).items()}

    def __contains__(self, name: str) -> bool:
        return self._since.get(name) is not None

    def names(self) -> set[str]:
        return set(self._since)

    def is_due(self, name: str) -> bool:
        since = self._since.get(name)
        return since is not None and since + self._grace <= self._now

    def is_due_or_add(self, name: str) -> bool:
        """Whether something that is not needed can be removed now. If it is not condemned yet, it is now."""
        if name not in self:
            self.add(name)
        return self.is_due(name)

    def add(self, name: str) -> None:
        if name in self._since:  # it was not written whole
            self._files.remove(f"condemned/{name}")
        with suppress(FileExistsError):  # another collection was quicker
            self._files.create(f"condemned/{name}", f"{self._now!r}\n".encode())
        self._since[name] = self._now

    def remove(self, name: str) -> None:
        if self._since.pop(name, self) is not self:
            self._files.remove(f"condemned/{name}")


def _read_time(data: bytes) -> float | None:
    with suppress(ValueError):
        return float(data) if data.endswith(b"\n") else None
    return None
