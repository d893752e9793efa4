"""dd's copying: blocks in, conversions, blocks out, and the figures at the end."""

from __future__ import annotations

from belljar.abi.errno import ESPIPE
from belljar.abi.errors import SysError
from belljar.abi.flags import (
    O_APPEND,
    O_CLOEXEC,
    O_CREAT,
    O_DIRECTORY,
    O_EXCL,
    O_NOFOLLOW,
    O_NONBLOCK,
    O_RDONLY,
    O_TRUNC,
    O_WRONLY,
    SEEK_CUR,
)
from belljar.bin._kit.quoting import quote_if_odd, quote_name
from belljar.bin.dd.convert import Converter
from belljar.bin.dd.operands import Operands
from belljar.kernel.process import Process

_PIECE = 1 << 20


class _DdError(Exception):
    """Ends the copy; the text is what to say."""


def copy(process: Process, operands: Operands) -> int:
    return Copy(process, operands).run()


class Copy:
    def __init__(self, process: Process, operands: Operands) -> None:
        self._process = process
        self._operands = operands
        self._converter = Converter(operands.conversions, operands.cbs)
        self._in = self._out = -1
        self._in_name = operands.input if operands.input is not None else "standard input"
        self._out_name = operands.output if operands.output is not None else "standard output"
        self._full_in = self._part_in = self._full_out = self._part_out = self._bytes = 0
        self._buffer = bytearray()
        self._regroups = not operands.bs or self._converter.regroups
        self._hole = False
        """The last block was skipped over, not written."""

    def run(self) -> int:
        process = self._process
        start = process.kernel.hub.clock.monotonic()
        status = 0
        try:
            self._open()
        except _DdError as error:
            process.warn(str(error))
            return 1
        try:
            self._skip()
            self._copy()
        except _DdError as error:
            process.warn(str(error))
            status = 1
        finally:
            for fd, name in ((self._in, self._operands.input), (self._out, self._operands.output)):
                if name is not None and fd >= 0:
                    process.close(fd)
        self._report(process.kernel.hub.clock.monotonic() - start)
        return status

    # Opening.

    def _open(self) -> None:
        operands, process = self._operands, self._process
        self._in = 0
        if operands.input is not None:
            try:
                self._in = process.open(operands.input, O_RDONLY | O_CLOEXEC | _flags(operands.input_flags))
            except SysError as error:
                raise _DdError(f"failed to open {quote_name(operands.input)}: {error.reason}") from None
        self._out = 1
        offset = self._seek_bytes
        if operands.output is not None:
            conversions = operands.conversions
            flags = O_WRONLY | O_CLOEXEC | _flags(operands.output_flags)
            flags |= 0 if "nocreat" in conversions else O_CREAT
            flags |= O_EXCL if "excl" in conversions else 0
            flags |= O_TRUNC if not offset and "notrunc" not in conversions else 0
            try:
                self._out = process.open(operands.output, flags, 0o666)
            except SysError as error:
                raise _DdError(f"failed to open {quote_name(operands.output)}: {error.reason}") from None
        if offset:
            self._seek_output(offset)

    @property
    def _seek_bytes(self) -> int:
        operands = self._operands
        return operands.seek * (1 if "seek_bytes" in operands.output_flags else operands.obs)

    def _seek_output(self, offset: int) -> None:
        process, operands = self._process, self._operands
        try:
            process.seek(self._out, offset, SEEK_CUR)
            if operands.output is not None and "notrunc" not in operands.conversions:
                process.fds[self._out].truncate(offset)
        except SysError as error:
            if error.errno != ESPIPE:
                shown = f"{quote_name(self._out_name)} to a length of {offset} bytes"
                raise _DdError(f"failed to truncate {shown} in output file: {error.reason}") from None
            raise _DdError(f"{quote_name(self._out_name)}: cannot seek: {error.reason}") from None

    def _skip(self) -> None:
        operands, process = self._operands, self._process
        size = operands.skip * (1 if "skip_bytes" in operands.input_flags else operands.ibs)
        if not size:
            return
        try:
            stat = process.fstat(self._in)
            position = process.seek(self._in, size, SEEK_CUR)
            missed = stat.is_regular and position > stat.size
        except SysError as error:
            if error.errno != ESPIPE:
                raise _DdError(f"{quote_name(self._in_name)}: cannot skip: {error.reason}") from None
            while size:
                data = self._read(min(size, operands.ibs))
                if not data:
                    break
                size -= len(data)
            missed = size > 0
        if missed and operands.status != "none":
            process.warn(f"{self._shown_input()}: cannot skip to specified offset")

    def _shown_input(self) -> str:
        return quote_if_odd(self._in_name)

    # Copying.

    def _copy(self) -> None:
        operands, converter = self._operands, self._converter
        left = operands.count
        by_bytes = "count_bytes" in operands.input_flags
        padding = b" " if converter.regroups else b"\0"
        while left is None or left > 0:
            want = min(operands.ibs, left) if by_bytes and left is not None else operands.ibs
            if want > _PIECE and not self._regroups:
                size = self._big_block(want)
                if left is not None:
                    left -= size if by_bytes else 1
                if size == 0:
                    break
                continue
            data = self._block(want)
            if not data:
                break
            if len(data) == operands.ibs:
                self._full_in += 1
            else:
                self._part_in += 1
                if "sync" in operands.conversions:
                    data = data.ljust(operands.ibs, padding)
            if left is not None:
                left -= len(data) if by_bytes else 1
            self._put(converter.feed(data))
        self._put(converter.finish())
        if self._buffer:
            self._write(bytes(self._buffer))
        if self._hole:
            position = self._process.seek(self._out, 0, SEEK_CUR)
            self._process.fds[self._out].truncate(position)

    def _big_block(self, size: int) -> int:
        """A block too large to hold goes through in pieces; a short one ends it. How much there was."""
        done = 0
        full = "fullblock" in self._operands.input_flags
        while done < size:
            want = min(_PIECE, size - done)
            data = self._read(want)
            self._send(self._converter.feed(data))
            done += len(data)
            if not data or (len(data) < want and not full):
                break
        if done == 0:
            return 0
        if done < size and "sync" in self._operands.conversions:
            for start in range(done, size, _PIECE):
                self._send(bytes(min(_PIECE, size - start)))
        elif done < size:
            self._part_in += 1
            self._part_out += 1
            return done
        self._full_in += done == size
        self._part_in += done < size
        self._full_out += 1
        return done

    def _block(self, size: int) -> bytes:
        data = self._read(size)
        if "fullblock" in self._operands.input_flags:
            while data and len(data) < size and (more := self._read(size - len(data))):
                data += more
        return data

    def _read(self, size: int) -> bytes:
        try:
            return self._process.read(self._in, size)
        except SysError as error:
            raise _DdError(f"error reading {quote_name(self._in_name)}: {error.reason}") from None

    def _put(self, data: bytes) -> None:
        if not data:
            return
        if not self._regroups:
            self._write(data)
            return
        size = self._operands.obs
        self._buffer += data
        whole = len(self._buffer) // size * size
        for start in range(0, whole, size):
            self._write(bytes(self._buffer[start : start + size]))
        del self._buffer[:whole]

    def _write(self, data: bytes) -> None:
        self._send(data)
        if len(data) == self._operands.obs:
            self._full_out += 1
        else:
            self._part_out += 1

    def _send(self, data: bytes) -> None:
        process = self._process
        try:
            self._hole = "sparse" in self._operands.conversions and not data.strip(b"\0") and self._seekable()
            if self._hole:
                process.seek(self._out, len(data), SEEK_CUR)
            else:
                process.write_all(self._out, data)
        except SysError as error:
            raise _DdError(f"error writing {quote_name(self._out_name)}: {error.reason}") from None
        self._bytes += len(data)

    def _seekable(self) -> bool:
        return self._process.fds[self._out].handle.seekable

    # Figures.

    def _report(self, seconds: float) -> None:
        status = self._operands.status
        if status == "none":
            return
        lines = [f"{self._full_in}+{self._part_in} records in", f"{self._full_out}+{self._part_out} records out"]
        cut = self._converter.truncated
        if cut:
            lines.append(f"{cut} truncated record{'s' if cut > 1 else ''}")
        if status != "noxfer":
            rate = _rate(self._bytes, seconds)
            lines.append(f"{_amount(self._bytes)} copied, {seconds:g} s, {rate}/s")
        self._process.stdout.flush()
        self._process.error("\n".join(lines) + "\n")


def _flags(names: set[str]) -> int:
    known = {"append": O_APPEND, "nofollow": O_NOFOLLOW, "directory": O_DIRECTORY, "nonblock": O_NONBLOCK}
    total = 0
    for name in names:
        total |= known.get(name, 0)
    return total


def _amount(count: int) -> str:
    text = f"{count} byte{'' if count == 1 else 's'}"
    if count < 1000:
        return text
    sizes = [_scaled(count, 1000)]
    if count >= 1024:
        sizes.append(_scaled(count, 1024))
    return f"{text} ({', '.join(sizes)})"


def _scaled(count: int, base: int) -> str:
    """Rounded to the nearest, with one decimal below ten."""
    power = 0
    while count >= base ** (power + 1):
        power += 1
    while True:
        scale = base**power
        tenths = (count * 10 * 2 + scale) // (scale * 2)
        if tenths < 100:
            text = f"{tenths // 10}.{tenths % 10}"
            break
        whole = (count * 2 + scale) // (scale * 2)
        if whole < base:
            text = str(whole)
            break
        power += 1
    letters = " kMGTPEZYRQ" if base == 1000 else " KMGTPEZYRQ"
    return f"{text} {letters[power].strip()}{'iB' if base == 1024 else 'B'}"


def _rate(count: int, seconds: float) -> str:
    if seconds <= 0:
        return "Infinity B"
    rate = count / seconds
    power = 1
    while rate >= 1000 ** (power + 1):
        power += 1
    value = rate / 1000**power
    text = f"{value:.1f}"
    return f"{text if len(text) <= 4 else f'{value:.0f}'} {' kMGTPEZYRQ'[power]}B"
