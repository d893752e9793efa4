"""ar - create, modify, and extract from archives

Usage: ar [-]{d|m|p|q|r|t|x}[cDosSuvU] ARCHIVE [MEMBER]...

  d - delete   p - print   q - append   r - replace or insert   t - list   x - extract
  c - do not warn if the archive had to be created   o - keep dates   u - only newer   v - verbose
"""

from __future__ import annotations

from collections.abc import Iterator

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.flags import O_CLOEXEC, O_CREAT, O_EXCL, O_WRONLY
from belljar.abi.paths import basename
from belljar.abi.records import NANO
from belljar.bin._kit import utility
from belljar.bin._kit.clock import format_time, zone_of
from belljar.bin._kit.modes import render_mode
from belljar.bin._kit.program import version
from belljar.kernel.process import Process

_MAGIC = b"!<arch>\n"


@dataclass(slots=True)
class _Member:
    name: str
    mtime: int
    uid: int
    gid: int
    mode: int
    data: bytes


class _Bad(Exception):
    """The file is not an archive."""


@utility("ar")
def main(process: Process, args: list[str]) -> int:
    if args[:1] in (["--version"], ["-V"]):
        process.print(version("ar"))
        return 0
    if not args or args[0] == "--help" or len(args) < 2:
        process.print(main.help().rstrip()) if args[:1] == ["--help"] else process.error(main.help())
        return 0 if args[:1] == ["--help"] else 1
    letters = args[0].lstrip("-")
    verb = next((letter for letter in letters if letter in "dmpqrtx"), "")
    archive, names = args[1], args[2:]
    if not verb:
        process.error("ar: no operation specified\n")
        return 1
    try:
        members = _read(process, archive)
    except SysError as error:
        if verb not in "rq" or error.name != "ENOENT":
            process.error(f"ar: {archive}: {error.reason}\n")
            return 9 if verb in "dmptx" and error.name == "ENOENT" else 1
        if "c" not in letters:
            process.error(f"ar: creating {archive}\n")
        members = []
    except _Bad:
        process.error(f"ar: {archive}: file format not recognized\n")
        return 1
    return Ar(process, letters, members).run(verb, archive, names)


def _read(process: Process, archive: str) -> list[_Member]:
    """All members; ar keeps them in memory, as its members are small, and pays for them."""
    data = process.read_file(archive)
    if not data.startswith(_MAGIC):
        raise _Bad
    members: list[_Member] = []
    long = b""
    position = len(_MAGIC)
    while position + 60 <= len(data):
        process.budget.charge()
        head = data[position : position + 60]
        if head[58:] != b"`\n":
            raise _Bad
        try:
            size = int(head[48:58])
            numbers = [
                int(head[a:b].strip() or b"0", base)
                for a, b, base in ((16, 28, 10), (28, 34, 10), (34, 40, 10), (40, 48, 8))
            ]
        except ValueError:
            raise _Bad from None
        body = data[position + 60 : position + 60 + size]
        position += 60 + size + size % 2
        raw = head[:16].rstrip()
        if raw == b"//":
            long = body
            continue
        if raw in (b"/", b"/SYM64/"):
            continue
        if raw.startswith(b"/") and raw[1:].isdigit():
            raw = long[int(raw[1:]) :].partition(b"\n")[0]
        name = raw.removesuffix(b"/").decode("utf-8", "surrogateescape")
        members.append(_Member(name, numbers[0], numbers[1], numbers[2], numbers[3], body))
    return members


def _encode(members: list[_Member]) -> Iterator[bytes]:
    yield _MAGIC
    table = b""
    places: dict[int, bytes] = {}
    for index, member in enumerate(members):
        raw = member.name.encode("utf-8", "surrogateescape")
        if len(raw) > 15:
            places[index] = b"/%d" % len(table)
            table += raw + b"/\n"
    if table:
        yield b"//".ljust(48) + b"%-10d`\n" % len(table) + table + b"\n" * (len(table) % 2)
    for index, member in enumerate(members):
        name = places.get(index, member.name.encode("utf-8", "surrogateescape") + b"/")
        yield b"%-16s%-12d%-6d%-6d%-8o%-10d`\n" % (
            name, member.mtime, member.uid, member.gid, member.mode, len(member.data),
        )  # fmt: skip
        yield member.data + b"\n" * (len(member.data) % 2)


class Ar:
    def __init__(self, process: Process, letters: str, members: list[_Member]) -> None:
        self._process = process
        self._letters = letters
        self._members = members
        self._verbose = "v" in letters

    def run(self, verb: str, archive: str, names: list[str]) -> int:
        process = self._process
        if verb in "rq":
            status = self._replace(names, append=verb == "q")
            process.write_file(archive, b"".join(_encode(self._members)))
            return status
        if verb == "d":
            for name in names:
                found = next((m for m in self._members if m.name == basename(name)), None)
                if found is not None:
                    self._members.remove(found)
                    if self._verbose:
                        process.print(f"d - {name}")
            process.write_file(archive, b"".join(_encode(self._members)))
            return 0
        if verb == "m":
            moved = [m for m in self._members if m.name in names]
            self._members = [m for m in self._members if m.name not in names] + moved
            process.write_file(archive, b"".join(_encode(self._members)))
            return 0
        status = 0
        chosen = [m for m in self._members if not names or m.name in names]
        for member in chosen:
            if verb == "t":
                self._list(member)
            elif verb == "p":
                if self._verbose:
                    process.print(f"\n<{member.name}>\n")
                process.stdout.write(member.data)
            else:
                status = max(status, self._extract(member))
        process.stdout.flush()
        for name in names:
            if not any(m.name == name for m in chosen):
                process.error(f"no entry {name} in archive\n")
        return status

    def _replace(self, names: list[str], *, append: bool) -> int:
        process = self._process
        for path in names:
            name = basename(path)
            try:
                stat = process.fs.stat(path)
                data = process.read_file(path)
            except SysError as error:
                process.error(f"ar: {path}: {error.reason}\n")
                return 1
            process.budget.charge_size(sum(len(m.data) for m in self._members) + len(data))
            if "U" in self._letters:
                new = _Member(name, stat.mtime // NANO, stat.uid, stat.gid, stat.mode, data)
            else:
                new = _Member(name, 0, 0, 0, 0o644 if stat.mode & 0o111 == 0 else 0o755, data)
            index = next((i for i, m in enumerate(self._members) if m.name == name), None)
            if append or index is None:
                self._members.append(new)
                if self._verbose:
                    process.print(f"a - {path}")
            else:
                if "u" in self._letters and stat.mtime // NANO <= self._members[index].mtime:
                    continue
                self._members[index] = new
                if self._verbose:
                    process.print(f"r - {path}")
        return 0

    def _list(self, member: _Member) -> None:
        if not self._verbose:
            self._process.print(member.name)
            return
        when = format_time("%b %e %H:%M %Y", member.mtime * NANO, zone_of(self._process.env))
        mode = render_mode(member.mode)[1:]
        self._process.print(f"{mode} {member.uid}/{member.gid} {len(member.data):6d} {when} {member.name}")

    def _extract(self, member: _Member) -> int:
        process = self._process
        name = basename(member.name)
        if name in ("", ".", "..", "/"):
            process.error(f"ar: illegal output pathname for archive member: {member.name}\n")
            return 1
        if self._verbose:
            process.print(f"x - {member.name}")
        try:
            try:
                process.fs.unlink(name)
            except SysError as error:
                if error.name != "ENOENT":
                    raise
            fd = process.open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC)
            try:
                process.write_all(fd, member.data)
            finally:
                process.close(fd)
            process.fs.chmod(name, member.mode & 0o777)
            if "o" in self._letters:
                process.fs.utimens(name, member.mtime * NANO, member.mtime * NANO)
        except SysError as error:
            process.error(f"ar: {name}: {error.reason}\n")
            return 1
        return 0
