"""unzip - list, test and extract files in a zip archive

Usage: unzip [-opts] FILE[.zip] [MEMBER]... [-x MEMBER...] [-d DIR]

Extraction never leaves the directory: names lose a leading slash and every `..`, and links are made last.
"""

from __future__ import annotations

import zipfile
import zlib
from datetime import UTC, datetime
from io import BufferedReader
from typing import IO

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.flags import O_CLOEXEC, O_CREAT, O_EXCL, O_RDONLY, O_WRONLY
from belljar.abi.records import NANO
from belljar.bin._guestfile import GuestFile
from belljar.bin._kit import flag, utility, value
from belljar.bin._kit.options import parse
from belljar.bin._kit.program import version
from belljar.bin._kit.stamps import seconds_of
from belljar.kernel.process import Process
from belljar.libc.pattern import Pattern, compile_pattern


@dataclass(frozen=True, slots=True)
class Options:
    list: bool = flag("-l", "list files (short format)")
    verbose: bool = flag("-v", "list verbosely")
    names: bool = flag("-Z", "-Z1: names only")
    one: bool = flag("-1", "with -Z: names only")
    test: bool = flag("-t", "test compressed archive data")
    pipe: bool = flag("-p", "extract files to pipe, no messages")
    to_stdout: bool = flag("-c", "extract files to stdout")
    overwrite: bool = flag("-o", "overwrite files WITHOUT prompting")
    never: bool = flag("-n", "never overwrite existing files")
    quiet: bool = flag("-q", "quiet mode")
    junk: bool = flag("-j", "junk paths (do not make directories)")
    update: bool = flag("-u", "update files, create if necessary")
    nocase: bool = flag("-C", "match filenames case-insensitively")
    attributes: bool = flag("-X", "(accepted)")
    directory: str | None = value("-d", "extract files into DIR", metavar="DIR")


@utility("unzip", usage_status=10)
def main(process: Process, args: list[str]) -> int:
    kept, excluded = _excludes(args)
    parsed = parse(Options, kept)
    if parsed.asked or not parsed.operands:
        process.print(version("unzip") if parsed.asked == "version" else main.help().rstrip())
        return 0 if parsed.asked or not args else 10
    options = Options(**parsed.values)
    name, *wanted = parsed.operands
    opened = _open(process, name)
    if opened is None:
        process.error(f"unzip:  cannot find or open {name}, {name}.zip or {name}.ZIP.\n")
        return 9
    found, file = opened
    try:
        archive = zipfile.ZipFile(file)
    except zipfile.BadZipFile:
        if not options.pipe:
            process.print(f"Archive:  {found}")
        process.stdout.flush()
        process.error(
            "  End-of-central-directory signature not found.  Either this file is not\n"
            "  a zipfile, or it constitutes one disk of a multi-part archive.  In the\n"
            "  latter case the central directory and zipfile comment will be found on\n"
            "  the last disk(s) of this archive.\n"
            f"unzip:  cannot find zipfile directory in one of {found} or\n"
            f"        {found}.zip, and cannot find {found}.ZIP, period.\n"
        )
        return 9
    return Unzipper(process, options, archive, found, wanted, excluded).run()


def _excludes(args: list[str]) -> tuple[list[str], list[str]]:
    kept: list[str] = []
    excluded: list[str] = []
    active = False
    for arg in args:
        if arg == "-x":
            active = True
        elif active and not arg.startswith("-"):
            excluded.append(arg)
        else:
            active = False
            kept.append(arg)
    return kept, excluded


def _open(process: Process, name: str) -> tuple[str, IO[bytes]] | None:
    for candidate in (name, name + ".zip", name + ".ZIP"):
        try:
            if process.fs.stat(candidate).is_dir:
                continue
            fd = process.open(candidate, O_RDONLY | O_CLOEXEC)
        except SysError:
            continue
        return candidate, BufferedReader(GuestFile(process, fd))
    return None


class Unzipper:
    def __init__(
        self,
        process: Process,
        options: Options,
        archive: zipfile.ZipFile,
        name: str,
        wanted: list[str],
        excluded: list[str],
    ) -> None:
        self._process = process
        self._options = options
        self._archive = archive
        self._name = name
        self._wanted = [(text, compile_pattern(text, nocase=options.nocase)) for text in wanted]
        self._excluded: list[Pattern] = [compile_pattern(text, nocase=options.nocase) for text in excluded]
        self._links: list[tuple[str, str]] = []
        self._status = 0

    def run(self) -> int:
        process, options = self._process, self._options
        members = [info for info in self._archive.infolist() if self._chosen(info.filename)]
        if options.names:
            for info in members:
                process.print(info.filename)
        elif options.list or options.verbose:
            process.print(f"Archive:  {self._name}")
            self._list(members, long=options.verbose)
        else:
            if not options.pipe and not options.quiet:
                process.print(f"Archive:  {self._name}")
            for info in members:
                process.budget.charge(4)
                self._one(info)
            self._make_links()
            if options.test and not self._status:
                process.print(f"No errors detected in compressed data of {self._name}.")
        process.stdout.flush()
        for text, pattern in self._wanted:
            if not any(pattern.matches(info.filename) for info in self._archive.infolist()):
                if not (options.list or options.verbose or options.names):
                    process.error(f"caution: filename not matched:  {text}\n")
                self._status = 11
        return self._status

    def _chosen(self, name: str) -> bool:
        if any(pattern.matches(name) for pattern in self._excluded):
            return False
        return not self._wanted or any(pattern.matches(name) for _, pattern in self._wanted)

    def _list(self, members: list[zipfile.ZipInfo], *, long: bool) -> None:
        out = self._process.print
        size, packed = sum(i.file_size for i in members), sum(i.compress_size for i in members)
        files = f"{len(members)} file{'s' if len(members) != 1 else ''}"
        if long:
            out(" Length   Method    Size  Cmpr    Date    Time   CRC-32   Name")
            out("--------  ------  ------- ---- ---------- ----- --------  ----")
            for i in members:
                method = {0: "Stored", 8: "Defl:N", 12: "BZip2 ", 14: "LZMA  "}.get(i.compress_type, "Unk   ")
                row = f"{i.file_size:8d}  {method} {i.compress_size:8d} {_ratio(i.file_size, i.compress_size):>3}%"
                out(f"{row} {_date(i)} {i.CRC:08x}  {i.filename}")
            out("--------          -------  ---                            -------")
            out(f"{size:8d}         {packed:8d} {_ratio(size, packed):>3}%                            {files}")
            return
        out("  Length      Date    Time    Name")
        out("---------  ---------- -----   ----")
        for i in members:
            out(f"{i.file_size:9d}  {_date(i)}   {i.filename}")
        out("---------                     -------")
        out(f"{size:9d}                     {files}")

    def _one(self, info: zipfile.ZipInfo) -> None:
        process, options = self._process, self._options
        try:
            if options.test:
                if not options.quiet:
                    process.print(f"    testing: {info.filename:<22} ", end="")
                for _ in self._data(info):
                    pass
                if not options.quiet:
                    process.print("  OK")
            elif options.pipe or options.to_stdout:
                if options.to_stdout and not info.is_dir():
                    process.print(f" {_verb(info)}: {info.filename:<22}  ")
                for data in self._data(info):
                    process.stdout.write(data)
            else:
                self._extract(info)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError):
            process.stdout.flush()
            process.error(f"  error:  invalid compressed data to inflate {info.filename}\n")
            self._status = 2
        except NotImplementedError:
            process.error(f"   skipping: {info.filename:<22}  unsupported compression method {info.compress_type}\n")
            self._status = 81
        except RuntimeError:
            process.error(f"   skipping: {info.filename:<22}  unable to get password\n")
            self._status = 82

    def _data(self, info: zipfile.ZipInfo):  # type: ignore[no-untyped-def]
        if info.is_dir():
            return
        with self._archive.open(info) as source:
            while data := source.read(1 << 18):
                self._process.budget.charge(1 + (len(data) >> 10))
                yield data

    def _path(self, info: zipfile.ZipInfo) -> str:
        parts = [part for part in info.filename.replace("\\", "/").split("/") if part not in ("", ".", "..")]
        if self._options.junk:
            parts = parts[-1:]
        base = self._options.directory
        return "/".join([base.rstrip("/") if base != "/" else "", *parts] if base else parts)

    def _extract(self, info: zipfile.ZipInfo) -> None:
        process, options = self._process, self._options
        fs = process.fs
        path = self._path(info)
        mode = info.external_attr >> 16
        if info.is_dir():
            if not options.junk and path:
                if self._make_folder(path) and not options.quiet:
                    process.print(f"   creating: {path}/")
                if mode & 0o777:
                    fs.chmod(path, mode & 0o777)
            return
        if "/" in path:
            self._make_folder(path.rpartition("/")[0])
        stat = fs.try_stat(path, follow=False)
        if stat is not None:
            if options.never or (options.update and stat.mtime // NANO >= self._seconds(info)):
                return
            if not options.overwrite and not options.update:
                process.stdout.flush()
                process.error(
                    f"replace {path}? [y]es, [n]o, [A]ll, [N]one, [r]ename:  NULL\n"
                    '(EOF or read error, treating as "[N]one" ...)\n'
                )
                self._options = Options(**{**{f: getattr(options, f) for f in options.__slots__}, "never": True})
                self._status = max(self._status, 1)
                return
            fs.unlink(path)
        if not options.quiet:
            process.print(f"{_verb(info)}: {path:<22}  ")
        if mode & 0o170000 == 0o120000:
            self._links.append((path, b"".join(self._data(info)).decode("utf-8", "surrogateescape")))
            return
        fd = process.open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC)
        try:
            for data in self._data(info):
                process.write_all(fd, data)
        finally:
            process.close(fd)
        if mode & 0o777:
            fs.chmod(path, mode & 0o777)
        when = self._seconds(info) * NANO
        fs.utimens(path, when, when)

    def _make_links(self) -> None:
        """Links come last, so that nothing is written through one that the archive brought."""
        for path, target in self._links:
            try:
                self._process.fs.symlink(target, path)
            except SysError as error:
                self._process.error(f"symlink error: {path}: {error.reason}\n")
                self._status = 1
        if self._links and not self._options.quiet:
            self._process.print("finishing deferred symbolic links:")
            for path, target in self._links:
                self._process.print(f"  {path:<22} -> {target}")

    def _make_folder(self, path: str) -> bool:
        fs = self._process.fs
        try:
            if fs.stat(path).is_dir:
                return False
        except SysError:
            above = path.rpartition("/")[0]
            if above:
                self._make_folder(above)
        try:
            fs.mkdir(path)
        except SysError as error:
            self._process.error(f"checkdir error:  cannot create {path}\n                 {error.reason}\n")
            self._status = 2
            return False
        return True

    def _seconds(self, info: zipfile.ZipInfo) -> int:
        found = seconds_of(self._process.env, *info.date_time)
        return found if found is not None else int(datetime(1980, 1, 1, tzinfo=UTC).timestamp())


def _verb(info: zipfile.ZipInfo) -> str:
    return " extracting" if info.compress_type == zipfile.ZIP_STORED else "  inflating"


def _date(info: zipfile.ZipInfo) -> str:
    year, month, day, hour, minute, _ = info.date_time
    return f"{year:04d}-{month:02d}-{day:02d} {hour:02d}:{minute:02d}"


def _ratio(size: int, packed: int) -> int:
    return round(100 * (size - packed) / size) if size else 0
