"""dd's conversions: each takes what it is fed and gives what is ready, in bulk."""

from __future__ import annotations

from belljar.bin.dd.ebcdic import TABLES


class Converter:
    """All conversions in the order dd applies them; `finish` gives what was held back."""

    def __init__(self, conversions: set[str], cbs: int) -> None:
        self._lower = "lcase" in conversions
        self._upper = "ucase" in conversions
        self._swab = "swab" in conversions
        self._code = next((TABLES[name] for name in TABLES if name in conversions), None)
        self._first = "ascii" in conversions
        """From EBCDIC a character is translated before anything else, to EBCDIC after everything."""
        self._block = cbs if conversions & {"block", "ebcdic", "ibm"} and cbs else 0
        self._unblock = cbs if conversions & {"unblock", "ascii"} and cbs else 0
        self._odd = b""
        self._held = b""
        self.truncated = 0
        """Records that were longer than cbs."""

    @property
    def regroups(self) -> bool:
        """Whether blocks in are not blocks out."""
        return bool(self._block or self._unblock)

    def feed(self, data: bytes) -> bytes:
        if self._code is not None and self._first:
            return self._convert(data.translate(self._code))
        return self._convert(data) if self._code is None else self._convert(data).translate(self._code)

    def _convert(self, data: bytes) -> bytes:
        if self._swab:
            data = self._swap(data)
        if self._lower:
            data = data.lower()
        elif self._upper:
            data = data.upper()
        if self._block:
            return self._to_records(data)
        return self._to_lines(data) if self._unblock else data

    def finish(self) -> bytes:
        out = b""
        if self._odd:
            odd, self._odd, self._swab = self._odd, b"", False
            out = self.feed(odd)
        if self._block and self._held:
            record = self._held[: self._block].ljust(self._block)
            out += record if self._code is None else record.translate(self._code)
        elif self._unblock and self._held:
            out += self._held.rstrip(b" ") + b"\n"
        self._held = b""
        return out

    def _swap(self, data: bytes) -> bytes:
        data = self._odd + data
        even = len(data) & ~1
        self._odd = data[even:]
        swapped = bytearray(even)
        swapped[0::2], swapped[1::2] = data[1:even:2], data[0:even:2]
        return bytes(swapped)

    def _to_records(self, data: bytes) -> bytes:
        """Lines as records of cbs bytes, padded with spaces or cut."""
        size = self._block
        lines = (self._held + data).split(b"\n")
        # Of a line still going on, keep just enough to know that it is too long.
        self._held = lines.pop()
        if len(self._held) > size + 1:
            self._held = self._held[: size + 1]
        self.truncated += sum(len(line) > size for line in lines)
        return b"".join([line[:size].ljust(size) for line in lines])

    def _to_lines(self, data: bytes) -> bytes:
        size = self._unblock
        data = self._held + data
        whole = len(data) // size * size
        self._held = data[whole:]
        return b"".join([data[i : i + size].rstrip(b" ") + b"\n" for i in range(0, whole, size)])
