"""zip - package and compress files

Usage: zip [-options] ZIPFILE FILE...

Add files to a zip archive, or replace those that are there. A FILE of - is standard input.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from io import BufferedRandom
from typing import IO

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.flags import O_CLOEXEC, O_CREAT, O_RDWR, O_TRUNC
from belljar.abi.paths import basename
from belljar.abi.records import NANO, Stat
from belljar.bin._guestfile import GuestFile
from belljar.bin._kit import choice, flag, utility
from belljar.bin._kit.clock import zone_of
from belljar.bin._kit.options import parse
from belljar.bin._kit.program import version
from belljar.kernel.process import Process
from belljar.libc.pattern import compile_pattern
from belljar.libc.zones import localtime


@dataclass(frozen=True, slots=True)
class Options:
    recursive: bool = flag("-r", "--recurse-paths", "recurse into directories")
    quiet: bool = flag("-q", "--quiet", "quiet operation")
    junk: bool = flag("-j", "--junk-paths", "don't record directory names")
    delete: bool = flag("-d", "--delete", "delete entries in the archive")
    move: bool = flag("-m", "--move", "move into the archive (delete files)")
    update: bool = flag("-u", "--update", "only changed or new files")
    freshen: bool = flag("-f", "--freshen", "only changed files")
    links: bool = flag("-y", "--symlinks", "store symbolic links as the link")
    no_directories: bool = flag("-D", "--no-dir-entries", "do not add directory entries")
    no_extra: bool = flag("-X", "--no-extra", "(extra attributes are never stored)")
    verbose: bool = flag("-v", "--verbose", "verbose")
    test: bool = flag("-T", "--test", "test the archive")
    level: int = choice({f"-{n}": n for n in range(10)}, "-0 store only .. -9 compress better", default=6)
    at: bool = flag("-@", "--names-stdin", "read names from standard input")


@utility("zip", usage_status=16)
def main(process: Process, args: list[str]) -> int:
    args, excluded, included = _patterns(args)
    parsed = parse(Options, args)
    if parsed.asked:
        process.print(main.help().rstrip() if parsed.asked == "help" else version("zip"))
        return 0
    options, operands = Options(**parsed.values), parsed.operands
    if not operands:
        process.print(main.help().rstrip())
        return 0
    name = operands[0] if "." in basename(operands[0]) else operands[0] + ".zip"
    names = operands[1:]
    if options.at:
        names += process.read_file("-").decode("utf-8", "surrogateescape").splitlines()
    zipper = Zipper(process, options, name, excluded, included)
    try:
        return zipper.delete(names) if options.delete else zipper.add(names)
    except zipfile.BadZipFile:
        process.error(f"\nzip error: Zip file structure invalid ({name})\n")
        return 3


def _patterns(args: list[str]) -> tuple[list[str], list[str], list[str]]:
    """-x and -i take every word up to the next option."""
    kept: list[str] = []
    lists: dict[str, list[str]] = {"-x": [], "-i": []}
    current = ""
    for arg in args:
        if arg in lists:
            current = arg
        elif current and (not arg.startswith("-") or arg == "-"):
            if arg == "@":
                current = ""
            else:
                lists[current].append(arg)
        else:
            current = ""
            kept.append(arg)
    return kept, lists["-x"], lists["-i"]


class Zipper:
    def __init__(self, process: Process, options: Options, name: str, excluded: list[str], included: list[str]) -> None:
        self._process = process
        self._options = options
        self._name = name
        self._excluded = [compile_pattern(text) for text in excluded]
        self._included = [compile_pattern(text) for text in included]

    def _say(self, text: str) -> None:
        if not self._options.quiet:
            self._process.print(text)

    def _open(self, name: str, flags: int) -> IO[bytes]:
        return BufferedRandom(GuestFile(self._process, self._process.open(name, flags | O_CLOEXEC)))

    def _old(self) -> zipfile.ZipFile | None:
        try:
            return zipfile.ZipFile(self._open(self._name, O_RDWR))
        except SysError:
            return None

    def add(self, names: list[str]) -> int:
        found = dict(self._files(names))
        old = self._old()
        known = {info.filename: info for info in old.infolist()} if old else {}
        if self._options.update or self._options.freshen:
            found = {
                name: entry
                for name, entry in found.items()
                if (name not in known and not self._options.freshen)
                or (name in known and self._date(entry[1]) > known[name].date_time)
            }
        if not found:
            if self._options.update or self._options.freshen:
                return 12 if not known else 0
            self._process.stdout.flush()
            tail = (
                f" (try: zip -r {self._name} . -i {' '.join(names)})"
                if self._options.recursive and names
                else f" ({self._name})"
            )
            self._process.print(f"\nzip error: Nothing to do!{tail}")
            return 12
        self._rewrite(old, found, set())
        if self._options.move:
            for path, _ in sorted(found.values(), reverse=True):
                self._remove(path)
        return 0

    def _remove(self, path: str) -> None:
        try:
            if self._process.fs.stat(path, follow=False).is_dir:
                self._process.fs.rmdir(path)
            else:
                self._process.fs.unlink(path)
        except SysError:
            return

    def delete(self, names: list[str]) -> int:
        old = self._old()
        patterns = [compile_pattern(name) for name in names]
        gone = {i.filename for i in old.infolist() if any(p.matches(i.filename) for p in patterns)} if old else set()
        if not gone:
            for name in names:
                self._process.print(f"\tzip warning: name not matched: {name}")
            self._process.print(f"\nzip error: Nothing to do! ({self._name})")
            return 12
        self._rewrite(old, {}, gone)
        return 0

    def _files(self, names: list[str]) -> Iterator[tuple[str, tuple[str, Stat]]]:
        fs = self._process.fs
        stack = list(reversed(names))
        given = set(names)
        archive = self._process.absolute(self._name)
        while stack:
            path = stack.pop()
            self._process.budget.charge(2)
            if path == "-":
                yield "-", ("-", fs.stat("/"))
                continue
            if (stat := fs.try_stat(path, follow=not self._options.links)) is None:
                self._process.stdout.flush()
                if path in given:
                    self._process.print(f"\tzip warning: name not matched: {path}")
                continue
            if self._process.absolute(path) == archive:
                continue
            stored = self._stored(path, stat)
            if stat.is_dir:
                if self._options.recursive:
                    below = sorted(fs.readdir(path), key=lambda entry: entry.name, reverse=True)
                    stack += [f"{path.rstrip('/')}/{entry.name}" for entry in below]
                if self._options.no_directories or self._options.junk or not stored:
                    continue
            if stored and self._wanted(stored):
                yield stored, (path, stat)

    def _stored(self, path: str, stat: Stat) -> str:
        if self._options.junk:
            return basename(path)
        text = "/".join(part for part in path.split("/") if part not in ("", "."))
        while text.startswith("../"):
            text = text[3:]
        return text + "/" if stat.is_dir and text else text

    def _wanted(self, name: str) -> bool:
        if any(pattern.matches(name) for pattern in self._excluded):
            return False
        return not self._included or any(pattern.matches(name) for pattern in self._included)

    def _date(self, stat: Stat) -> tuple[int, int, int, int, int, int]:
        when = localtime(stat.mtime // NANO, zone_of(self._process.env))
        if when.year < 1980:
            return 1980, 1, 1, 0, 0, 0
        if when.year > 2107:
            return 2107, 12, 31, 23, 59, 58
        return when.year, when.month, when.day, when.hour, when.minute, when.second // 2 * 2

    def _rewrite(self, old: zipfile.ZipFile | None, found: dict[str, tuple[str, Stat]], gone: set[str]) -> None:
        """A new archive beside the old one, which it replaces when it is whole."""
        temporary = self._name + ".zip-tmp"
        with self._open(temporary, O_RDWR | O_CREAT | O_TRUNC) as file, zipfile.ZipFile(file, "w") as new:
            for info in old.infolist() if old else ():
                if info.filename in gone:
                    self._say(f"deleting: {info.filename}")
                elif info.filename in found:
                    self._put(new, info.filename, *found.pop(info.filename), verb="updating")
                else:
                    assert old is not None
                    self._copy(new, info, old.open(info))
            for name, (path, stat) in found.items():
                self._put(new, name, path, stat, verb="  adding")
        self._process.fs.rename(temporary, self._name)

    def _copy(self, new: zipfile.ZipFile, info: zipfile.ZipInfo, source: IO[bytes]) -> None:
        fresh = zipfile.ZipInfo(info.filename, info.date_time)
        fresh.external_attr, fresh.compress_type, fresh.create_system = info.external_attr, info.compress_type, 3
        with new.open(fresh, "w") as target:
            while data := source.read(1 << 18):
                self._process.budget.charge(1 + (len(data) >> 10))
                target.write(data)

    def _put(self, new: zipfile.ZipFile, name: str, path: str, stat: Stat, *, verb: str) -> None:
        process = self._process
        now = path == "-"
        info = zipfile.ZipInfo(name, self._date(stat._replace(mtime=process.kernel.now()) if now else stat))
        info.create_system = 3
        info.external_attr = (0o100600 if now else stat.mode) << 16 | (0x10 if stat.is_dir and not now else 0)
        if stat.is_dir and not now:
            new.writestr(info, b"")
            self._say(f"{verb}: {name} (stored 0%)")
            return
        link = stat.is_symlink
        chunks = iter([process.fs.readlink(path).encode("utf-8", "surrogateescape")]) if link else process.chunks(path)
        head = next(chunks, b"")
        # A small piece that does not shrink is stored as it is, as zip decides when it is done.
        shrinks = self._options.level > 0 and len(zlib.compress(head, self._options.level)) - 6 < len(head)
        info.compress_type = zipfile.ZIP_DEFLATED if shrinks else zipfile.ZIP_STORED
        info._compresslevel = self._options.level  # type: ignore[attr-defined]
        with new.open(info, "w", force_zip64=stat.size > 1 << 31) as target:
            target.write(head)
            for chunk in chunks:
                target.write(chunk)
        saved = 100 * (info.file_size - info.compress_size) / info.file_size if info.file_size else 0
        how = f"deflated {saved:.0f}%" if shrinks else "stored 0%"
        self._say(f"{verb}: {name} ({how})")
