"""A tar archive as a stream: its members one after the other, read in exact amounts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Protocol

from belljar.libc.tar_header import (
    BLOCK,
    LONG_LINK,
    LONG_NAME,
    PAX,
    PAX_GLOBAL,
    BadHeader,
    Member,
    apply_pax,
    parse_header,
    parse_pax,
    parse_sparse_block,
    sparse_continues,
)

_NOTHING: Final = b"\0" * BLOCK


class UnexpectedEnd(Exception):
    """The archive stops inside a member."""


class NotArchive(Exception):
    """The file does not begin with a header."""


class Meter(Protocol):
    """Counts what reading costs, and raises when it is too much: a budget, for one."""

    def charge(self, steps: int, /) -> None: ...

    def charge_size(self, size: int, /) -> None: ...


class Source:
    """Bytes from chunks, in exact amounts."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._rest = b""
        self.position = 0

    def read(self, size: int) -> bytes:
        """Exactly `size` bytes, fewer only at the end."""
        rest = self._rest
        if len(rest) >= size:
            self._rest = rest[size:]
            self.position += size
            return rest[:size]
        parts = [rest]
        have = len(rest)
        while have < size:
            more = next(self._chunks, None)
            if more is None:
                break
            parts.append(more)
            have += len(more)
        data = b"".join(parts)
        self._rest = data[size:]
        data = data[:size]
        self.position += len(data)
        return data

    def pieces(self, size: int) -> Iterator[bytes]:
        """`size` bytes in pieces as they come. Raises UnexpectedEnd."""
        while size:
            if not self._rest:
                more = next(self._chunks, None)
                if more is None:
                    raise UnexpectedEnd
                self._rest = more
            piece = self._rest[:size]
            self._rest = self._rest[size:] if len(piece) < len(self._rest) else b""
            self.position += len(piece)
            size -= len(piece)
            yield piece


class Reader:
    """The members of an archive, one after the other; each one's data is to be read or skipped before the next."""

    def __init__(self, source: Source, meter: Meter, *, ignore_zeros: bool = False) -> None:
        self._source = source
        self._meter = meter
        self._ignore_zeros = ignore_zeros
        self._left = 0
        self._padding = 0
        self._global: dict[str, str] = {}
        self.start = 0
        """Offset of the current member's headers."""
        self.end = 0
        """Offset of the end of the last member read."""
        self.lone_zero = False

    def __iter__(self) -> Iterator[Member]:
        while (member := self._next()) is not None:
            yield member

    def data(self) -> Iterator[bytes]:
        """The current member's data. Raises UnexpectedEnd."""
        for piece in self._source.pieces(self._left):
            self._left -= len(piece)
            self._meter.charge(1 + (len(piece) >> 12))
            yield piece

    def _skip(self) -> None:
        for _ in self.data():
            pass
        if self._padding and len(self._source.read(self._padding)) < self._padding:
            raise UnexpectedEnd
        self._padding = 0
        self.end = self._source.position

    def _next(self) -> Member | None:
        self._skip()
        source = self._source
        self.start = source.position
        records: dict[str, str] = {}
        long: dict[bytes, str] = {}
        while True:
            block = source.read(BLOCK)
            self._meter.charge(2)
            if not block:
                return None
            if len(block) < BLOCK:
                raise UnexpectedEnd if self.start else NotArchive
            if block == _NOTHING:
                if self._ignore_zeros:
                    self.start = source.position
                    continue
                follower = source.read(BLOCK)
                self.lone_zero = bool(follower) and follower != _NOTHING
                return None
            try:
                member = parse_header(block)
                if member.kind in (PAX, PAX_GLOBAL, LONG_NAME, LONG_LINK):
                    self._meter.charge_size(member.size)
                    if member.size > 1 << 24:
                        raise BadHeader
                    data = source.read(member.size + -member.size % BLOCK)
                    if len(data) < member.size:
                        raise UnexpectedEnd
                    data = data[: member.size]
                    if member.kind == PAX:
                        records = {**records, **parse_pax(data)}
                    elif member.kind == PAX_GLOBAL:
                        self._global = {**self._global, **parse_pax(data)}
                    else:
                        long[member.kind] = data.split(b"\0", 1)[0].decode("utf-8", "surrogateescape")
                    continue
                member.name = long.get(LONG_NAME, member.name)
                member.link = long.get(LONG_LINK, member.link)
                if records or self._global:
                    apply_pax(member, {**self._global, **records})
                more = member.sparse is not None and sparse_continues(block) and member.kind == b"S"
                while more:
                    pairs, more = parse_sparse_block(source.read(BLOCK).ljust(BLOCK, b"\0"))
                    assert member.sparse is not None
                    member.sparse += pairs
                    self._meter.charge(1 + len(pairs))
            except BadHeader:
                if self.start == 0:
                    raise NotArchive from None
                raise
            self._left, self._padding = member.size, -member.size % BLOCK
            if records.get("GNU.sparse.major") == "1":
                self._read_map(member)
            return member

    def _read_map(self, member: Member) -> None:
        """Version 1.0 of the sparse map: decimal lines at the start of the data, filled up to a block."""
        lines: list[int] = []
        text = b""
        wanted = 1
        while len(lines) < wanted:
            if self._left < BLOCK:
                raise BadHeader
            text += self._source.read(BLOCK)
            self._left -= BLOCK
            parts = text.split(b"\n")
            text = parts.pop()
            if not all(part.isdigit() for part in parts) or len(text) > 20:
                raise BadHeader
            lines += [int(part) for part in parts]
            if lines:
                wanted = 1 + 2 * lines[0]
            self._meter.charge(1 + len(parts))
            self._meter.charge_size(len(lines) * 40)
        member.sparse = list(zip(lines[1:wanted:2], lines[2:wanted:2], strict=True))
