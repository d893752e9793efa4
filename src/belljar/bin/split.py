"""split - split a file into pieces

Usage: split [OPTION]... [FILE [PREFIX]]

Output pieces of FILE to PREFIXaa, PREFIXab, ...; default size is 1000 lines, and default PREFIX is 'x'. With no FILE,
or when FILE is -, read standard input. CHUNKS may be: N (split into N files based on size of input), K/N (output Kth
of N to stdout), l/N and l/K/N (without splitting lines), r/N and r/K/N (likewise but use round robin distribution).
"""

from collections.abc import Iterator

from belljar.abi.dataclass import dataclass
from belljar.abi.errno import EISDIR, strerror
from belljar.abi.errors import SysError
from belljar.abi.flags import S_IFCHR
from belljar.bin._kit import UsageError, flag, many, utility, value
from belljar.bin._kit.numbers import bounded
from belljar.bin._kit.quoting import quote, quote_if_odd, quote_name
from belljar.bin._kit.text import LineBatches
from belljar.bin._pieces import Piece, Pieces, PiecesError, alphabet, suffixes
from belljar.kernel.process import Process

_RANGE = strerror(34)


@dataclass(frozen=True, slots=True)
class Options:
    suffix_length: str | None = value("-a", "--suffix-length", "generate suffixes of length N (default 2)", metavar="N")
    additional: str = value(
        "--additional-suffix", "append an additional SUFFIX to file names", metavar="SUFFIX", default=""
    )
    bytes: str | None = value("-b", "--bytes", "put SIZE bytes per output file", metavar="SIZE")
    line_bytes: str | None = value(
        "-C", "--line-bytes", "put at most SIZE bytes of records per output file", metavar="SIZE"
    )
    decimal: bool = flag("-d", "use numeric suffixes starting at 0, not alphabetic")
    numeric: str | None = value(
        "--numeric-suffixes", "same as -d, but allow setting the start value", metavar="FROM", bare="0"
    )
    hex: bool = flag("-x", "use hex suffixes starting at 0, not alphabetic")
    hex_from: str | None = value(
        "--hex-suffixes", "same as -x, but allow setting the start value", metavar="FROM", bare="0"
    )
    elide: bool = flag("-e", "--elide-empty-files", "do not generate empty output files with '-n'")
    filter: str | None = value("--filter", "write to shell COMMAND; file name is $FILE", metavar="COMMAND")
    lines: str | None = value("-l", "--lines", "put NUMBER lines/records per output file", metavar="NUMBER")
    number: str | None = value("-n", "--number", "generate CHUNKS output files", metavar="CHUNKS")
    separators: tuple[str, ...] = many(
        "-t", "--separator", "use SEP instead of newline as the record separator", metavar="SEP"
    )
    unbuffered: bool = flag("-u", "--unbuffered", "immediately copy input to output with '-n r/...'")
    verbose: bool = flag("--verbose", "print a diagnostic just before each output file is opened")
    digits: str | None = value("--old-lines", "(what -NUMBER sets)", metavar="NUMBER")


@utility("split", Options, digits="digits")
def main(process: Process, options: Options, operands: list[str]) -> int:
    if len(operands) > 2:
        raise UsageError(f"extra operand {quote(operands[2], process.env)}")
    name = operands[0] if operands else "-"
    ways = [
        w for w in (options.bytes, options.line_bytes, options.lines, options.number, options.digits) if w is not None
    ]
    if len(ways) > 1:
        raise UsageError("cannot split in more than one way")
    splitter = Splitter(process, options, name, operands[1] if len(operands) > 1 else "x")
    try:
        splitter.run()
    except PiecesError as error:
        process.warn(str(error))
        return error.status
    except SysError as error:
        what = quote_if_odd(name) if error.errno == EISDIR else f"cannot open {quote_name(name)} for reading"
        process.warn(f"{what}: {error.reason}")
        return 1
    return 0


class Splitter:
    def __init__(self, process: Process, options: Options, name: str, prefix: str) -> None:
        self._process = process
        self._options = options
        self._name = name
        self._separator = self._parse_separator()
        if "/" in options.additional:
            shown = quote(options.additional, process.env)
            raise UsageError(f"invalid suffix {shown}, contains directory separator")
        self._chunks = self._parse_chunks()
        self._pieces = self._make_pieces(prefix)

    # Options.

    def _parse_separator(self) -> bytes:
        if len(set(self._options.separators)) > 1:
            raise UsageError("multiple separator characters specified", hint=False)
        if not self._options.separators:
            return b"\n"
        text = self._options.separators[0]
        if text == "\\0":
            return b"\0"
        data = text.encode("utf-8", "surrogateescape")
        if len(data) != 1:
            if not data:
                raise UsageError("empty record separator", hint=False)
            raise UsageError(f"multi-character separator {quote(text, self._process.env)}", hint=False)
        return data

    def _count(self, what: str, text: str, *, suffixes: bool = False) -> int:
        """A number that is at least 1."""
        number = bounded(self._process, text, f"number of {what}", 0, suffixes=suffixes)
        if number == 0:
            raise UsageError(f"invalid number of {what}: {quote(text, self._process.env)}: {_RANGE}", hint=False)
        return number

    def _parse_chunks(self) -> tuple[str, int, int] | None:
        """Return how to choose records (by size, l or r), which chunk alone (0: all), and how many there are."""
        text = self._options.number
        if text is None:
            return None
        kind = text[:1] if text[:2] in ("l/", "r/") else ""
        first, slash, last = text.removeprefix(f"{kind}/" if kind else "").partition("/")
        if not slash:
            return kind, 0, self._count("chunks", first)
        total = self._count("chunks", last)
        if not (first.isascii() and first.isdecimal()):
            raise UsageError(f"invalid chunk number: {quote(first, self._process.env)}", hint=False)
        if len(first) > 18 or not 1 <= int(first) <= total:
            raise UsageError(f"invalid chunk number: {quote(first, self._process.env)}: {_RANGE}", hint=False)
        return kind, int(first), total

    def _make_pieces(self, prefix: str) -> Pieces:
        options = self._options
        kind, start = "letters", 0
        if options.decimal or options.numeric is not None:
            kind, start = "decimal", self._start(options.numeric, 10)
        elif options.hex or options.hex_from is not None:
            kind, start = "hex", self._start(options.hex_from, 16)
        digits = alphabet(kind)
        length = 2
        if options.suffix_length is not None:
            if not (options.suffix_length.isascii() and options.suffix_length.isdecimal()):
                raise UsageError(
                    f"invalid suffix length: {quote(options.suffix_length, self._process.env)}", hint=False
                )
            length = int(options.suffix_length[:18])
        needed = 1
        if self._chunks is not None:
            # Where a start is given, names get no longer for it: they may run out.
            while len(digits) ** needed < self._chunks[2] + (start if start < self._chunks[2] else 0):
                needed += 1
            if options.suffix_length is None or length == 0:
                length = max(2, needed)
            elif length < needed:
                raise UsageError(f"the suffix length needs to be at least {needed}", hint=False)
        self._process.budget.charge_size(length)
        if len(digits) ** min(length or 2, 64) <= start:
            raise UsageError("numerical suffix start value is too large for the suffix length")
        grows = (options.suffix_length is None or length == 0) and self._chunks is None and not start
        return Pieces(
            self._process,
            suffixes(digits, length or 2, start=start, grows=grows),
            prefix,
            options.additional,
            command=options.filter,
            verbose=options.verbose,
            skip_empty=options.elide,
        )

    def _start(self, text: str | None, base: int) -> int:
        try:
            return int(text or "0", base)
        except ValueError:
            shown = quote(text or "", self._process.env)
            kind = "hexadecimal" if base == 16 else "numerical"
            raise UsageError(f"{shown}: invalid start value for {kind} suffix") from None

    # Splitting.

    def run(self) -> None:
        options = self._options
        if self._chunks is not None:
            kind, only, total = self._chunks
            if only and options.filter is not None:
                raise UsageError("--filter does not process a chunk extracted to stdout")
            if kind == "r":
                self._round_robin(only, total)
            elif kind == "l":
                self._by_line_chunks(only, total)
            else:
                self._by_size(only, total)
        elif options.bytes is not None:
            self._cut(self._read(), self._count("bytes", options.bytes, suffixes=True))
        elif options.line_bytes is not None:
            self._by_line_bytes(self._count("bytes", options.line_bytes, suffixes=True))
        else:
            self._cut(self._records(), self._count("lines", options.lines or options.digits or "1000"))

    def _read(self) -> Iterator[bytes]:
        return self._process.chunks(self._name)

    def _cut(self, source: Iterator[bytes] | Iterator[list[bytes]], count: int) -> None:
        """Pieces of so many units each: bytes of chunks, or records of batches."""
        piece: Piece | None = None
        left = 0
        for batch in source:
            start = 0
            while start < len(batch):
                self._process.budget.charge()
                if piece is None:
                    piece, left = self._pieces.create(), count
                part = batch[start : start + left]
                piece.write(part if isinstance(part, bytes) else b"".join(part))
                start += len(part)
                left -= len(part)
                if left == 0:
                    piece.close()
                    piece = None
        if piece is not None:
            piece.close()

    def _records(self) -> Iterator[list[bytes]]:
        """Batches of whole records with their separators; the last may lack it."""
        separator = self._separator
        source = LineBatches(self._read(), separator, self._process.budget)
        held: list[bytes] | None = None
        for batch in source:
            if held is not None:
                yield [record + separator for record in held]
            held = batch
        if held is not None:
            records = [record + separator for record in held]
            if not source.complete:
                records[-1] = held[-1]
            yield records

    def _by_line_bytes(self, size: int) -> None:
        """As many whole records as fit; one that is too long is cut."""
        piece: Piece | None = None
        left = 0
        for batch in self._records():
            self._process.budget.charge(len(batch))
            for record in batch:
                while record:
                    if piece is not None and len(record) > left and (left < size or left == 0):
                        piece.close()
                        piece = None
                    if piece is None:
                        piece, left = self._pieces.create(), size
                    piece.write(record[:left])
                    taken = min(len(record), left)
                    left -= taken
                    record = record[taken:]
        if piece is not None:
            piece.close()

    def _by_size(self, only: int, total: int) -> None:
        """Equal parts of a file whose size is known, the rest in the last; they are copied, never held."""
        length = self._length()
        size = max(1, length // total)
        source = self._read()
        held = b""
        for number in range(1, total + 1):
            self._process.budget.charge()
            end = length if number == total else min(number * size, length)
            left = end - min((number - 1) * size, length)
            piece = self._pieces.create() if only == 0 and (left or not self._options.elide) else None
            while left > 0 and (held := held or next(source, b"")):
                part, held = held[:left], held[left:]
                left -= len(part)
                if piece is not None:
                    piece.write(part)
                elif only == number:
                    self._process.stdout.write(part)
            if piece is not None:
                piece.close()
            elif only == number:
                return

    def _length(self) -> int:
        stat = self._process.fstat(0) if self._name == "-" else self._process.fs.stat(self._name)
        if stat.kind == S_IFCHR:
            return 0
        if not stat.is_regular:
            raise PiecesError(f"{quote_if_odd(self._name)}: cannot determine file size")
        return stat.size

    def _by_line_chunks(self, only: int, total: int) -> None:
        """Parts as equal as whole lines allow: where each ends only its line tells, so all is read first."""
        self._length()
        data = self._process.read_file(self._name)
        length = len(data)
        size = max(1, length // total)
        start = 0
        for number in range(1, total + 1):
            self._process.budget.charge()
            end = length if number == total else min(length, number * size)
            end = max(start, self._line_end(data, end))
            if only == 0:
                piece = self._pieces.create() if end > start or not self._options.elide else None
                if piece is not None:
                    if end > start:
                        piece.write(data[start:end])
                    piece.close()
            elif only == number:
                self._process.stdout.write(data[start:end])
                return
            start = end

    def _line_end(self, data: bytes, end: int) -> int:
        """The end of the record that the byte before `end` is in."""
        if end == 0 or end >= len(data):
            return end
        found = data.find(self._separator, end - 1)
        return len(data) if found < 0 else found + 1

    def _round_robin(self, only: int, total: int) -> None:
        pieces = [] if only else [self._pieces.create() for _ in range(total)]
        first = 0
        for batch in self._records():
            self._process.budget.charge(total)
            if only:
                self._process.stdout.write(b"".join(batch[(only - 1 - first) % total :: total]))
            else:
                for number, piece in enumerate(pieces):
                    part = batch[(number - first) % total :: total]
                    if part:
                        piece.write(b"".join(part))
            first = (first + len(batch)) % total
        for piece in pieces:
            piece.close()
