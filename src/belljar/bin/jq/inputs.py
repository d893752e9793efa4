"""The inputs of a run, one at a time: JSON values, raw lines, event streams, or all of them at once."""

from collections.abc import Iterator
from typing import Any

from belljar.abi.errors import SysError
from belljar.bin._kit import LineBatches
from belljar.bin.jq.exact import EventParser, ExactParser, ParseError
from belljar.bin.jq.reader import Decoder
from belljar.kernel.process import Process

WHOLE_FILE = 1 << 25
"""Regular files up to this size are read at once, larger ones and pipes piece by piece."""


class Inputs:
    def __init__(self, process: Process, files: list[str], flags: set[str]) -> None:
        self.process = process
        self.files = files
        self.flags = flags
        self.filename: str | None = None
        self.failed = False
        self._raw_lines = 0
        self._started = False
        stream = "stream" in flags or "stream-errors" in flags
        self._decoder = Decoder(EventParser() if stream else None)
        self._values = self._all()

    def next(self) -> Any:
        """The next input. StopIteration after the last, ParseError if the text is not JSON."""
        self._started = True
        return next(self._values)

    @property
    def lines(self) -> int:
        return self._raw_lines if "raw-input" in self.flags else self._decoder.lines

    def position(self) -> str:
        """`file:line` for messages."""
        if not self._started:
            return "<unknown>"
        return f"{self.filename if self.filename is not None else '<stdin>'}:{self.lines}"

    def _all(self) -> Iterator[Any]:
        raw, slurp = "raw-input" in self.flags, "slurp" in self.flags
        if raw:
            return self._slurp_text() if slurp else self._lines()
        values = self._sequence() if "seq" in self.flags else self._json()
        if "stream-errors" in self.flags:
            values = self._with_errors(values)
        return self._slurped(values) if slurp else values

    def _slurped(self, values: Iterator[Any]) -> Iterator[Any]:
        gathered = []
        for value in values:
            self.process.budget.charge()
            gathered.append(value)
        yield gathered

    def _chunks(self) -> Iterator[tuple[bytes, bool]]:
        """The bytes of all files; True with a regular file's whole contents. A missing one is said and skipped."""
        for name in self.files:
            self.filename = None if name == "-" else name
            self._decoder.new_file()
            self._raw_lines = 0
            try:
                if name != "-" and self._small(name):
                    yield self.process.read_file(name), True
                    continue
                for data in self.process.chunks(name):
                    yield data, False
            except SysError as error:
                self.process.stdout.flush()
                self.process.error(f"jq: error: Could not open {name}: {error.reason}\n")
                self.failed = True

    def _small(self, name: str) -> bool:
        stat = self.process.fs.stat(name)
        return stat.is_regular and stat.size <= WHOLE_FILE

    def _json(self) -> Iterator[Any]:
        for data, whole in self._chunks():
            yield from self._decoder.whole(data) if whole else self._decoder.feed(data)
            self.process.budget.charge_size(self._decoder.held)
        yield from self._decoder.close()

    def _with_errors(self, values: Iterator[Any]) -> Iterator[Any]:
        try:
            yield from values
        except ParseError as error:
            parser = self._decoder._exact
            path = list(parser.path) if isinstance(parser, EventParser) else []
            yield [str(error), path]

    def _sequence(self) -> Iterator[Any]:
        """`--seq`: texts that RS starts; a broken one is reported and left out."""
        text = self._text()
        line, column = 1, 0
        parts = text.split("\x1e")
        for place, part in enumerate(parts):
            last = place == len(parts) - 1
            if place:
                parser = ExactParser(line, column)
                try:
                    yield from parser.feed(part)
                    yield from parser.close()
                except ParseError as error:
                    after = _moved(line, column, part + ("" if last else "\x1e"))
                    reason = "Unfinished abandoned text at EOF" if last else "Truncated value"
                    if "at EOF" not in str(error):
                        reason, after = str(error), (0, 0)
                    place_text = f" at line {after[0]}, column {after[1]}" if after[0] else ""
                    self._ignore(reason + place_text)
            elif part.strip() and last:
                end = _moved(line, column, part)
                self._ignore(f"Unfinished abandoned text at EOF at line {end[0]}, column {end[1]}")
            line, column = _moved(line, column, part + "\x1e")

    def _ignore(self, message: str) -> None:
        self.process.stdout.flush()
        self.process.error(f"jq: ignoring parse error: {message}\n")

    def _lines(self) -> Iterator[Any]:
        batches = LineBatches((data for data, _ in self._chunks()), b"\n", self.process.budget)
        for batch in batches:
            for line in batch:
                self._raw_lines += batches.complete
                yield line.decode("utf-8", "replace")

    def _slurp_text(self) -> Iterator[Any]:
        yield self._text()

    def _text(self) -> str:
        parts, total = [], 0
        for data, _ in self._chunks():
            total += len(data)
            self.process.budget.charge_size(total)
            parts.append(data)
        return b"".join(parts).decode("utf-8", "replace")


def _moved(line: int, column: int, text: str) -> tuple[int, int]:
    newlines = text.count("\n")
    if newlines:
        return line + newlines, len(text) - text.rfind("\n") - 1
    return line, column + len(text)
