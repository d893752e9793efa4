"""tar -r, -u, -A, --delete and -d: what works on an archive that is already there."""

from __future__ import annotations

from belljar.abi.errors import SysError
from belljar.abi.flags import O_RDONLY, S_IFLNK
from belljar.abi.records import NANO
from belljar.bin._compress.codecs import sniff
from belljar.bin.tar.create import Creator
from belljar.bin.tar.run import Run, Selection
from belljar.bin.tar.stream import Sink, open_source
from belljar.libc.tar_header import BLOCK, HARD_LINK, SYMLINK, Member
from belljar.libc.tar_stream import Reader


def _check_plain(run: Run) -> bool:
    """Whether the archive exists; a compressed one can't be changed in place."""
    try:
        head = next(run.process.chunks(run.settings.file, BLOCK), b"")
    except SysError as error:
        if error.name == "ENOENT" and run.settings.mode in ("append", "update"):
            return False
        run.fatal(f"{run.settings.file}: Cannot open: {error.reason}")
    if run.settings.compression or (head[257:262] != b"ustar" and sniff(head) is not None):
        run.fatal("Cannot update compressed archives")
    return True


def append(run: Run) -> None:
    """-r and -u."""
    end = 0
    newest: dict[str, int] = {}
    if _check_plain(run):
        reader = Reader(open_source(run.process, run.settings.file, None)[0], run.process.budget)
        for member in reader:
            newest[member.name] = max(member.mtime // NANO, newest.get(member.name, 0))
            run.process.budget.charge_size(len(newest) * 64)
        end = reader.end
    exists = run.process.fs.exists(run.settings.file)
    sink = Sink(run.process, run.settings.file, None, at=end if exists else None)
    stat = run.process.fstat(sink.fd)
    creator = Creator(run, sink, (stat.dev, stat.ino))
    if run.settings.mode == "update":
        creator.newest = newest
    creator.add_all()
    sink.finish()
    sink.close()


def concatenate(run: Run, names: list[str]) -> None:
    """-A: the members of other archives at the end of this one."""
    _check_plain(run)
    reader = Reader(open_source(run.process, run.settings.file, None)[0], run.process.budget)
    for _ in reader:
        pass
    sink = Sink(run.process, run.settings.file, None, at=reader.end)
    for name in names:
        try:
            source, _ = open_source(run.process, name, None)
        except SysError as error:
            run.fail(f"{name}: Cannot open: {error.reason}")
            continue
        while (block := source.read(BLOCK)) and block != b"\0" * BLOCK:
            run.process.budget.charge()
            sink.write(block)
    sink.finish()
    sink.close()


def delete(run: Run, selection: Selection) -> None:
    """--delete: the rest moves up. Kept members are copied within the file, never held."""
    _check_plain(run)
    process = run.process
    name = run.settings.file
    spans: list[tuple[int, int]] = []
    reader = Reader(open_source(process, name, None)[0], process.budget)
    start, keep = 0, False
    for member in reader:
        if reader.start and keep:
            spans.append((start, reader.start))
        start, keep = reader.start, not selection.wants(member.name)
    if keep:
        spans.append((start, reader.end))
    fd = process.open(name, O_RDONLY)
    source = process.fds[fd].retain()
    try:
        at = 0
        while spans and spans[0][0] == at:
            at = spans.pop(0)[1]
        writer = process.open(name, 2)
        process.seek(writer, at)
        for begin, end in spans:
            while begin < end:
                data = source.pread(min(1 << 18, end - begin), begin)
                if not data:
                    break
                process.write_all(writer, data)
                begin += len(data)
                at += len(data)
        process.close(writer)
        sink = Sink(process, name, None, at=at)
        sink.finish()
        sink.close()
    finally:
        source.release()
        process.close(fd)


class Comparison:
    """-d: what differs between the archive and the files."""

    def __init__(self, run: Run, reader: Reader) -> None:
        self._run = run
        self._reader = reader

    def compare(self, member: Member) -> None:
        run = self._run
        name = run.extracted_name(member)
        if name is None:
            return
        fs = run.process.fs
        try:
            stat = fs.stat(name.rstrip("/") or "/", follow=False)
        except SysError as error:
            run.warn(f"{name}: Warning: Cannot stat: {error.reason}")
            run.differ()
            return
        if run.settings.verbose:
            run.process.print(name)
        if member.kind == SYMLINK:
            if stat.kind != S_IFLNK:
                self._say(name, "File type differs")
            elif fs.readlink(name) != member.link:
                self._say(name, "Symlink differs")
            return
        if member.kind == HARD_LINK:
            other = fs.try_stat(run.links_name(member), follow=False)
            if other is None or (other.dev, other.ino) != (stat.dev, stat.ino):
                self._say(name, f"Not linked to {member.link}")
            return
        if stat.is_dir != member.is_dir or stat.is_symlink:
            self._say(name, "File type differs")
            return
        if stat.mode & 0o7777 != member.mode:
            self._say(name, "Mode differs")
        if stat.uid != member.uid:
            self._say(name, "Uid differs")
        if stat.gid != member.gid:
            self._say(name, "Gid differs")
        if not member.is_regular:
            return
        if stat.mtime // NANO != member.mtime // NANO:
            self._say(name, "Mod time differs")
        if stat.size != member.full_size:
            self._say(name, "Size differs")
        elif member.sparse is None and self._contents_differ(name):
            self._say(name, "Contents differ")

    def _say(self, name: str, what: str) -> None:
        self._run.process.print(f"{name}: {what}")
        self._run.differ()

    def _contents_differ(self, name: str) -> bool:
        process = self._run.process
        fd = process.open(name, O_RDONLY)
        try:
            for piece in self._reader.data():
                while piece:
                    data = process.read(fd, len(piece))
                    if not data or not piece.startswith(data):
                        return True
                    piece = piece[len(data) :]
        finally:
            process.close(fd)
        return False
