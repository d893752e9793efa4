"""Root filesystems of machines: `Rootfs`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from belljar.abi.limits import MIB
from belljar.api.errors import SandboxCreationError
from belljar.api.machine_disks import DEFAULT, builtin_disk, check_builtin, image_disk
from belljar.vm.attach_host import Attached, attach_base, attach_blocks, attach_file
from belljar.vm.blocks import DIRTY_BYTES
from belljar.vm.blockstore import BlockStore, BlockStoreError, Chunk
from belljar.vm.disks_host import Disk
from belljar.vm.flat_host import Flat, ImageBytes, flatten, open_flat, stream_disk, stream_flat
from belljar.vm.nbd_host import FileBase
from belljar.vm.parts_host import PartsUnavailable, find_parts
from belljar.vm.plan import RootMode

if TYPE_CHECKING:
    from belljar.api.image import Image
    from belljar.store.store import Store

Report = Callable[[str, dict[str, Any]], None]
"""Told of what happens to blocks: the kind of an event, and what there is to say."""


class Rootfs:
    """A root filesystem: where its blocks come from, and what becomes of changes. Made by its class methods."""

    name: str = ""
    """For `info`."""

    @staticmethod
    def builtin(name: str = DEFAULT) -> Rootfs:
        """A built-in system, read-only: "debian:12"."""
        return Builtin(check_builtin(name))

    @staticmethod
    def default(image: Image | str | None = None, store: Store | None = None) -> Rootfs:
        """An image, or the built-in system, with changes in the machine's memory, within Limits.file_bytes."""
        return Builtin(DEFAULT, RootMode.MEMORY) if image is None else FromImage(image, store, RootMode.MEMORY)

    @staticmethod
    def from_image(image: Image | str) -> Rootfs:
        """An image (`Image`, its name or digest), read-only; its disk is made when it is first used."""
        return FromImage(image)

    @staticmethod
    def ephemeral(base: Rootfs, max_dirty_bytes: int = DIRTY_BYTES) -> Rootfs:
        """A base whose changed blocks are kept by this process, up to so many bytes, and end with the machine. What a
        guest writes beyond that fails."""
        return Writable(_check_base(base), None, _check_dirty(max_dirty_bytes))

    @staticmethod
    def cow(
        base: Rootfs | None = None,
        writable: BlockStore | None = None,
        max_dirty_bytes: int = DIRTY_BYTES,
        *,
        source: Rootfs | None = None,
    ) -> Rootfs:
        """A base whose changed blocks are kept by a block store; `source` is both in one (`compose`). So many bytes are
        buffered at most before they are written to the store; a guest's flush writes all."""
        if source is not None:
            if base is not None or writable is not None or not isinstance(source, Composed):
                raise TypeError("Rootfs.cow() takes base and writable, or source=Rootfs.compose(...)")
            base, writable = source.base, source.overlay
        if base is None or not isinstance(writable, BlockStore):
            raise TypeError(f"Rootfs.cow() takes a base and a BlockStore, not {writable!r}")
        return Writable(_check_base(base), writable, _check_dirty(max_dirty_bytes))

    @staticmethod
    def compose(base: Rootfs, overlay: BlockStore) -> Rootfs:
        """A base under the blocks of a store, to look at: for `flatten` and `cow(source=)`."""
        if not isinstance(overlay, BlockStore):
            raise TypeError(f"Rootfs.compose() takes a base and a BlockStore, not {overlay!r}")
        return Composed(_check_base(base), overlay)

    @staticmethod
    def flatten(source: Rootfs, dest: BlockStore, format: str = "qcow2", cluster_size: int = 65_536) -> Rootfs:
        """Write a standalone image of a base, or of a base and what lies over it, into a store, byte for byte. The
        result can be booted, be a base, and be read by `bytes`. BlockStoreError."""
        if format != "qcow2":
            raise ValueError(f"format={format!r}: only 'qcow2' is written")
        if not isinstance(dest, BlockStore):
            raise TypeError(f"Rootfs.flatten() writes into a BlockStore, not {dest!r}")
        if not isinstance(source, _Base | Composed):
            raise TypeError("Rootfs.flatten() takes a base, or Rootfs.compose(base, overlay)")
        overlay = source.overlay if isinstance(source, Composed) else None
        disk = source.disk()
        opened = source.open_base()
        try:
            return FlatImage(disk, dest, flatten(opened, disk.digest, overlay, dest, cluster_size))
        finally:
            opened.close()

    @staticmethod
    def bytes(image: Rootfs) -> Iterator[bytes]:
        """The bytes of an image's file (qcow2): of a base, or of what `flatten` made."""
        if isinstance(image, FlatImage):
            return stream_flat(image.flat, image.store)
        if isinstance(image, _Base):
            return stream_disk(FileBase(image.disk().path))
        raise TypeError("Rootfs.bytes() takes a base, or what Rootfs.flatten() gave")

    def disk(self) -> Disk:
        """The base image. SandboxCreationError, ImageError."""
        raise NotImplementedError

    def attach(self, report: Report) -> Attached:
        """The blocks, for one machine. SandboxCreationError."""
        raise NotImplementedError

    def open_base(self) -> FileBase | ImageBytes:
        """What changes lie over."""
        return FileBase(self.disk().path)


class _Base(Rootfs):
    """One whose blocks nobody changes."""

    mode: RootMode = RootMode.READ_ONLY

    def attach(self, report: Report) -> Attached:
        return attach_file(self.disk(), self.mode)


class Builtin(_Base):
    def __init__(self, name: str, mode: RootMode = RootMode.READ_ONLY) -> None:
        self.name = name
        self.mode = mode

    def disk(self) -> Disk:
        try:
            return builtin_disk(self.name)
        except PartsUnavailable as error:
            raise SandboxCreationError(str(error)) from error


class FromImage(_Base):
    def __init__(self, image: Image | str, store: Store | None = None, mode: RootMode = RootMode.READ_ONLY) -> None:
        from belljar.api.image import root_source

        self.source = root_source(image, store)
        self.mode = mode
        self.name = self.source.digest or "image"

    def disk(self) -> Disk:
        try:
            return image_disk(find_parts(), self.source)
        except PartsUnavailable as error:
            raise SandboxCreationError(str(error)) from error


class FlatImage(_Base):
    """What `Rootfs.flatten` made."""

    def __init__(self, origin: Disk, store: BlockStore, flat: Flat) -> None:
        self.flat, self.store = flat, store
        self.name = flat.digest
        self._disk = Disk("", flat.disk_size, flat.digest, origin.files, origin.env, origin.cwd, origin.user)

    def disk(self) -> Disk:
        return self._disk

    def open_base(self) -> ImageBytes:
        return open_flat(self.flat, self.store)

    def attach(self, report: Report) -> Attached:
        with _explained():
            return attach_base(self.open_base(), report)


class Composed(Rootfs):
    def __init__(self, base: Rootfs, overlay: BlockStore) -> None:
        self.base, self.overlay = base, overlay

    def disk(self) -> Disk:
        return self.base.disk()

    def open_base(self) -> FileBase | ImageBytes:
        return self.base.open_base()

    def attach(self, report: Report) -> Attached:
        raise SandboxCreationError("Rootfs.compose() is not for booting: use Rootfs.cow(source=...)")


class Writable(Rootfs):
    """One that a guest may change."""

    def __init__(self, base: Rootfs, store: BlockStore | None, dirty_bytes: int, chunks: Sequence[Chunk] = ()) -> None:
        self._base, self._store, self._dirty_bytes, self._chunks = base, store, dirty_bytes, chunks
        self.name = base.name

    def copy(self, chunks: Sequence[Chunk]) -> Writable:
        """The same disk as it is with these blocks; what is changed from now on ends with its machine."""
        return Writable(self._base, None, self._dirty_bytes + sum(len(data) for _, data in chunks), chunks)

    def disk(self) -> Disk:
        return self._base.disk()

    def open_base(self) -> FileBase | ImageBytes:
        return self._base.open_base()

    def attach(self, report: Report) -> Attached:
        with _explained():
            digest = self.disk().digest
            return attach_blocks(self.open_base(), digest, self._store, self._dirty_bytes, report, self._chunks)


class _explained:
    """Turns what a store says into the error of a sandbox that can't be made."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, BlockStoreError):
            raise SandboxCreationError(f"the root filesystem can't be used: {error}") from error


def _check_base(base: object) -> Rootfs:
    if not isinstance(base, _Base):
        raise TypeError(f"a base is Rootfs.builtin(...), .from_image(...) or what .flatten(...) gave, not {base!r}")
    return base


def _check_dirty(count: object) -> int:
    if isinstance(count, bool) or not isinstance(count, int):
        raise TypeError(f"max_dirty_bytes= takes an int, not {count!r}")
    if count < MIB:
        raise ValueError(f"max_dirty_bytes={count}: a mebibyte is the least")
    return count
