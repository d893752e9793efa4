"""The common part of the compression tools: take a file, write its counterpart beside it, and put that in its place.

Each tool is a subclass that gives its names and its words; their messages are their own down to the punctuation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any

from belljar.abi.dataclass import dataclass
from belljar.abi.errno import EEXIST
from belljar.abi.errors import SysError
from belljar.abi.flags import O_CLOEXEC, O_CREAT, O_EXCL, O_WRONLY
from belljar.abi.paths import basename
from belljar.abi.records import Stat
from belljar.bin._compress.codecs import Codec, Corrupt, encode
from belljar.bin._kit import choice, count, flag, value
from belljar.kernel.process import Process

LEVELS: dict[str, Any] = {f"-{n}": n for n in range(1, 10)} | {"--fast": 1, "--best": 9}


@dataclass(frozen=True, slots=True)
class Options:
    """The options they share."""

    stdout: bool = flag("-c", "--stdout", "--to-stdout", "write on standard output, keep original files unchanged")
    decompress: bool | None = choice(
        {"-d": True, "--decompress": True, "--uncompress": True, "-z": False, "--compress": False}, "decompress"
    )
    force: bool = flag("-f", "--force", "force overwrite of output file and compress links")
    keep: bool = flag("-k", "--keep", "keep (don't delete) input files")
    quiet: int = count("-q", "--quiet", "suppress all warnings")
    test: bool = flag("-t", "--test", "test compressed file integrity")
    verbose: int = count("-v", "--verbose", "verbose mode")
    level: int | None = choice(LEVELS, "-1 compress faster .. -9 compress better")


@dataclass(frozen=True, slots=True)
class ListingOptions(Options):
    list: bool = flag("-l", "--list", "list compressed file contents")
    suffix: str | None = value("-S", "--suffix", "use suffix SUF on compressed files", metavar="SUF")


class Counted:
    """Chunks on their way, and how many bytes they were."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = chunks
        self.size = 0

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            self.size += len(chunk)
            yield chunk


class Failed(Exception):
    """Skip this file, with this status; the message was already printed."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Tool:
    """One run of a tool over its operands."""

    codec: Codec
    suffix: str
    known: Mapping[str, str] = MappingProxyType({})
    """Suffixes of compressed files, and what stands in their place when decompressed."""

    def __init__(self, process: Process, options: Options, name: str) -> None:
        self.process = process
        self.options = options
        self.name = name
        self.level = options.level or self.codec.level
        self.decompressing = bool(options.decompress) or options.test
        self.to_stdout = options.stdout
        self.read = self.written = 0

    # What a tool says.

    def say(self, text: str) -> None:
        self.process.error(f"{self.name}: {text}\n")

    def missing(self, name: str, error: SysError) -> int:
        raise NotImplementedError

    def is_directory(self, name: str) -> int:
        raise NotImplementedError

    def exists(self, target: str) -> int:
        raise NotImplementedError

    def has_suffix(self, name: str) -> int:
        raise NotImplementedError

    def odd_suffix(self, name: str) -> str:
        """The output's name for a file without a known suffix; or raises Failed."""
        raise NotImplementedError

    def corrupt(self, name: str, target: str, error: Corrupt) -> int:
        raise NotImplementedError

    def done(self, name: str, target: str) -> None:
        """Report a success, if -v was given."""

    def find(self, name: str) -> tuple[str, Stat]:
        """The input's real name and what it is."""
        return name, self.process.fs.stat(name)

    # The work.

    def run(self, operands: list[str]) -> int:
        status = 0
        for name in operands or ["-"]:
            try:
                result = self.one(name)
            except Failed as failed:
                result = failed.status
            status = self.combine(status, result)
        return status

    def combine(self, old: int, new: int) -> int:
        return max(old, new)

    def one(self, name: str) -> int:
        if name == "-":
            self.transform("stdin", "stdout", self.process.chunks("-"), 1, None)
            return 0
        try:
            name, stat = self.find(name)
        except SysError as error:
            return self.missing(name, error)
        if stat.is_dir:
            return self.is_directory(name)
        target = "stdout" if self.to_stdout or self.options.test else self.target(name)
        try:
            chunks = self._opened(name)
        except SysError as error:
            return self.missing(name, error)
        if self.to_stdout or self.options.test:
            self.transform(name, target, chunks, 1, stat)
            return 0
        fd = self._create(target)
        finished = False
        try:
            self.transform(name, target, chunks, fd, stat)
            finished = True
        except SysError as error:
            self.say(f"{target}: {error.reason}")
            raise Failed(1) from None
        finally:
            self.process.close(fd)
            if not finished:
                self.process.fs.unlink(target)
        self._replace_input(name, target, stat)
        return 0

    def _opened(self, name: str) -> Iterator[bytes]:
        """The file's chunks; it is opened now, so that a failure is seen before the output is made."""
        fd = self.process.open(name, O_CLOEXEC)

        def chunks() -> Iterator[bytes]:
            try:
                while data := self.process.read(fd):
                    yield data
            finally:
                if fd in self.process.fds:  # not if the process has ended meanwhile
                    self.process.close(fd)

        return chunks()

    def target(self, name: str) -> str:
        base = basename(name)
        for suffix, instead in sorted(self.known.items(), key=lambda item: -len(item[0])):
            if base.endswith(suffix) and len(base) > len(suffix):
                if self.decompressing:
                    return name[: -len(suffix)] + instead
                if not instead and not self.options.force:
                    raise Failed(self.has_suffix(name))
        return self.odd_suffix(name) if self.decompressing else name + self.suffix

    def _create(self, target: str) -> int:
        flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC
        try:
            return self.process.open(target, flags, 0o600)
        except SysError as error:
            if error.errno != EEXIST:
                self.say(f"{target}: {error.reason}")
                raise Failed(1) from None
        if not self.options.force and not self.may_replace(target):
            raise Failed(self.exists(target))
        try:
            self.process.fs.unlink(target)
            return self.process.open(target, flags, 0o600)
        except SysError as error:
            self.say(f"{target}: {error.reason}")
            raise Failed(1) from None

    def may_replace(self, target: str) -> bool:
        return False

    def _replace_input(self, name: str, target: str, stat: Stat) -> None:
        """Copy owner, mode and times to the output, then remove the input."""
        fs = self.process.fs
        with suppress(SysError):  # only root may give files away
            fs.chown(target, stat.uid, stat.gid)
        fs.chmod(target, stat.mode & 0o777)
        fs.utimens(target, stat.atime, stat.mtime)
        if not self.keeps():
            fs.unlink(name)
        self.done(name, target)

    def keeps(self) -> bool:
        return self.options.keep

    def transform(self, name: str, target: str, chunks: Iterable[bytes], fd: int, stat: Stat | None) -> None:
        """Run the codec from one to the other. A message about the data is printed here."""
        source = Counted(chunks)
        self.read = self.written = 0
        pieces = self.decode(source) if self.decompressing else self.encode(source, name, stat)
        try:
            for piece in pieces:
                self.written += len(piece)
                if not self.options.test:
                    self.process.write_all(fd, piece)
        except Corrupt as error:
            status = self.corrupt(name, target, error)
            if error.kind != "garbage" or status == 1:
                raise Failed(status) from None
            self.late = status
        finally:
            self.read = source.size
        if fd == 1:
            self.done(name, target)

    late = 0

    def decode(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        return self.codec.decode(chunks, self.process.budget.charge)

    def encode(self, chunks: Iterable[bytes], name: str, stat: Stat | None) -> Iterator[bytes]:
        return encode(chunks, self.codec.encoder(self.level))
