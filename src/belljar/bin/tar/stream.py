"""An archive as a stream: opened plain or compressed, read in exact amounts, written in whole records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from belljar.abi.errors import SysError
from belljar.abi.flags import O_CLOEXEC, O_CREAT, O_RDWR, O_TRUNC, O_WRONLY
from belljar.bin._compress.codecs import CODECS, Charge, Codec, Corrupt, sniff
from belljar.kernel.process import Process
from belljar.libc.tar_header import BLOCK, RECORD
from belljar.libc.tar_stream import Source

_SUFFIXES = {
    ".gz": "gzip", ".tgz": "gzip", ".taz": "gzip", ".bz2": "bzip2", ".tbz": "bzip2", ".tbz2": "bzip2", ".tz2": "bzip2",
    ".xz": "xz", ".txz": "xz", ".lzma": "lzma", ".tlz": "lzma", ".zst": "zstd", ".tzst": "zstd",
}  # fmt: skip


def codec_by_suffix(name: str) -> Codec | None:
    return next((CODECS[codec] for suffix, codec in _SUFFIXES.items() if name.endswith(suffix)), None)


def open_source(process: Process, name: str, codec: Codec | None) -> tuple[Source, Codec | None]:
    """An archive for reading, whose compression is recognised by its first bytes if none was named."""
    chunks = process.chunks(name)
    try:
        first = next(chunks, b"")
    except SysError as error:
        raise SysError(error.errno, name) from None
    everything: Iterable[bytes] = chain([first] if first else [], chunks)
    found = codec or (sniff(first) if len(first) < 263 or first[257:262] != b"ustar" else None)
    if found is None:
        return Source(everything), None
    return Source(_tolerant(found, everything, process.budget.charge)), found


def _tolerant(codec: Codec, chunks: Iterable[bytes], charge: Charge) -> Iterator[bytes]:
    """Garbage behind good data is nothing to stop for."""
    try:
        yield from codec.decode(chunks, charge)
    except Corrupt as error:
        if error.kind != "garbage":
            raise


class Sink:
    """Output of an archive: written in large pieces, compressed if asked."""

    def __init__(self, process: Process, name: str, codec: Codec | None, *, at: int | None = None) -> None:
        self._process = process
        if name == "-":
            self.fd, self._own = 1, False
        elif at is None:
            self.fd, self._own = process.open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC), True
        else:
            self.fd, self._own = process.open(name, O_RDWR | O_CLOEXEC), True
            process.fds[self.fd].truncate(at)
            process.seek(self.fd, at)
        self._parts: list[bytes] = []
        self._size = 0
        self.total = at or 0
        self._encoder = codec.encoder(codec.level) if codec is not None else None

    def write(self, data: bytes) -> None:
        self._parts.append(data)
        self._size += len(data)
        self.total += len(data)
        if self._size >= 1 << 18:
            self._flush()

    def _flush(self) -> None:
        data = b"".join(self._parts)
        self._parts = []
        self._size = 0
        if self._encoder is not None:
            data = self._encoder.compress(data)
        if data:
            self._process.write_all(self.fd, data)

    def finish(self) -> None:
        """Two empty blocks, filled up to a record."""
        end = b"\0" * (2 * BLOCK)
        self.write(end + b"\0" * (-(self.total + len(end)) % RECORD))
        self._flush()
        if self._encoder is not None:
            self._process.write_all(self.fd, self._encoder.flush())

    def close(self) -> None:
        if self._own:
            self._process.close(self.fd)
