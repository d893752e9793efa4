"""File-server operations as messages: a server whose far side is any Python object, on the other end of a channel.

`RemoteServer` is the near side: it turns each operation into a request, a dict of simple values (int, bytes, bool,
None, lists of them, and one str, the operation), and gives it to a `call` that may park. `Export` is the far side: it
holds the real server and answers with {"ok": value} or {"errno": number}. Neither trusts the other: a malformed reply
is EIO, a malformed request EINVAL, an unknown node ESTALE, and neither can make the other hold more than the limits
below.

With a `Cache`, directories are asked for with the stats of their entries ("scan") and small files are read several at
a time ("contents"), as far as the real server can tell what changed. Changes made from here show at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from weakref import WeakValueDictionary

from belljar.abi.errno import EFBIG, EIO, ENOENT
from belljar.abi.errors import SysError
from belljar.abi.flags import FILE_MAX, O_ACCMODE, O_RDONLY, O_TRUNC, PATH_MAX, S_IFMT, S_IFREG
from belljar.abi.paths import check_name, fsencode
from belljar.abi.records import Dirent, Owner, SetAttr, Stat, StatFs
from belljar.kernel.fs.remote_cache import Cache, Listing, RemoteNode, Window
from belljar.kernel.fs.remote_export import Export as Export
from belljar.kernel.fs.remote_message import (
    ATTRIBUTES,
    BATCH,
    CHUNK,
    DEPTH_MAX,
    ENTRIES_MAX,
    ERRNO_MAX,
    ID_MAX,
    LET_GO_MAX,
    OPEN_FLAGS,
    PAGE,
    READ_MAX,
    SCAN_MAX,
    SCANS,
    SMALL,
    U64,
    Call,
    Malformed,
    Send,
    check_data,
    check_file_name,
    check_int,
    check_list,
    check_text,
)
from belljar.kernel.fs.remote_message import Message as Message
from belljar.kernel.vfs.server import FileServer, Handle, Node

_SCAN_COST: Final = 16
"""Entries that are listed with their stats for the price of one lookup."""


class RemoteServer(FileServer):
    """A server at the other end of `call`. With `send` (no reply, may not park), closes are told at once."""

    kind = "remote"

    export: int | None = None
    """The number by which the far side knows what it serves, where there is one."""

    def __init__(self, call: Call, send: Send | None = None, cache: Cache | None = None) -> None:
        self._call = call
        self._send = send
        self.cache = cache
        self._nodes: WeakValueDictionary[int, RemoteNode] = WeakValueDictionary()
        self._forgotten: list[tuple[int, int]] = []
        self._closed: list[int] = []
        self._changes = 0
        """Changes asked for so far: an answer to an earlier question is not kept."""
        self._moves = 0
        """Directories removed and files renamed so far."""
        self._files_ahead = Window(BATCH)
        self._listings_ahead = Window(SCANS)
        self._root = self._node(self.ask("root"))

    def ask(self, operation: str, **fields: object) -> object:
        """Send one request with the nodes and handles released since the last, and return its answer."""
        message: dict[str, object] = {"op": operation}
        for key, value in fields.items():
            if type(value) is str:
                if key != "target":
                    check_name(value)
                message[key] = fsencode(value)
            else:
                message[key] = value
        if self._forgotten:
            message["forget"] = [list(pair) for pair in self._forgotten[:LET_GO_MAX]]
            del self._forgotten[:LET_GO_MAX]
        if self._closed:
            message["close"] = self._closed[:LET_GO_MAX]
            del self._closed[:LET_GO_MAX]
        reply = self._call(message)
        if not isinstance(reply, Mapping):
            raise SysError(EIO)
        if "errno" in reply:
            number, why = reply["errno"], reply.get("why")
            raise SysError(
                number if type(number) is int and 0 < number <= ERRNO_MAX else EIO,
                why=why.decode("utf-8", "replace") if isinstance(why, bytes) else "",
            )
        if "ok" not in reply:
            raise SysError(EIO)
        return reply["ok"]

    def close_handle(self, number: int) -> None:
        if self._send is not None:
            self._send({"op": "nothing", "close": [number]})
        else:
            self._closed.append(number)

    def _node(self, value: object) -> RemoteNode:
        try:
            number, mode, uid, gid = check_list(value, 4)
            number = check_int(number, 1, ID_MAX)
            mode, uid, gid = check_int(mode, 0, 0o177777), check_int(uid, 0, 1 << 32), check_int(gid, 0, 1 << 32)
        except (Malformed, ValueError):
            raise SysError(EIO) from None
        node = self._nodes.get(number)
        if node is None:
            node = self._nodes[number] = RemoteNode(number, mode, uid, gid, self._forgotten)
        elif (node.mode ^ mode) & S_IFMT:
            raise SysError(EIO)  # a file does not turn into a directory
        node.times += 1
        node.mode, node.uid, node.gid = mode, uid, gid
        return node

    @property
    def root(self) -> Node:
        return self._root

    def walk(self, directory: Node, name: str) -> Node:
        assert isinstance(directory, RemoteNode)
        listing = self._listing(directory, wanted=False)
        if listing is not None:
            node = listing.nodes.get(name)
            if node is not None:
                return node
            if listing.exact and name not in listing.nodes:
                check_name(name)
                raise SysError(ENOENT)
        return self._node(self.ask("walk", node=directory.number, name=name))

    def _listing(self, directory: RemoteNode, *, wanted: bool) -> Listing | None:
        """The directory's entries, if they are known or (`wanted`, or after some lookups) worth asking for."""
        cache, listing = self.cache, directory.listing
        if cache is None:
            return None
        period = cache.period()
        if listing is not None and listing.checked == period:
            self._listings_ahead.used += listing.ahead
            listing.ahead = False
            return listing
        if directory.count > SCAN_MAX:
            return None
        small = listing is not None and directory.count <= _SCAN_COST
        if not wanted and not small and directory.misses * _SCAN_COST < max(directory.count, cache.guess):
            directory.misses += 1
            return None
        self._scan(cache, directory, period)
        listing = directory.listing
        return listing if listing is not None and listing.checked == period else None

    def _scan(self, cache: Cache, directory: RemoteNode, period: int) -> None:
        """Ask for a directory, and for those that are likely to come next."""
        wanted = [directory, *cache.stale_after(directory, self._listings_ahead.next() - 1)]
        self._listings_ahead.asked(len(wanted) - 1)
        known = [each.listing for each in wanted]
        changes = self._changes
        for each in wanted:
            each.misses = 0
        nodes = [[each.number, 0 if it is None else it.digest] for each, it in zip(wanted, known, strict=True)]
        try:
            answers = check_list(self.ask("scan", nodes=nodes), SCANS)
        except (Malformed, SysError):
            return  # the question that is asked instead tells why
        if answers and answers[0] is None:
            self.cache = None  # this server can't tell what changed
            return
        for each, listing, answer in zip(wanted, known, answers, strict=False):
            if answer is False:
                each.count = SCAN_MAX + 1
            elif type(answer) is list:
                self._take_listing(cache, each, listing, answer, changes, period)
                if each.listing is not None:
                    each.listing.ahead = each is not directory

    def _take_listing(
        self,
        cache: Cache,
        directory: RemoteNode,
        known: Listing | None,
        answer: list[object],
        changes: int,
        period: int,
    ) -> None:
        if len(answer) == 1:
            listing = known if known is not None and known.digest == answer[0] else None
        else:
            listing, rows = self._scanned(directory, answer)
            directory.count = len(rows)
            if changes == self._changes:
                cache.put(listing, rows)
        if listing is not None and directory.listing is listing and changes == self._changes:
            listing.checked = period
            cache.touch(directory)

    def _scanned(
        self, directory: RemoteNode, answer: object
    ) -> tuple[Listing, list[tuple[str, RemoteNode | None, Stat, bool]]]:
        rows: list[tuple[str, RemoteNode | None, Stat, bool]] = []
        try:
            digest, exact, entries = check_list(answer, 3)
            listing = Listing(directory, check_int(digest, 0, U64), exact is True)
            for entry in check_list(entries, SCAN_MAX):
                name, number, settled, *values = check_list(entry, 15)
                stat = self._stat(values)
                node = None if number == 0 else self._node([number, stat.mode, stat.uid, stat.gid])
                rows.append((check_file_name(name), node, stat, settled is True))
        except (Malformed, ValueError):
            raise SysError(EIO) from None
        return listing, rows

    def locate(self, directory: Node) -> tuple[Node, str] | None:
        assert isinstance(directory, RemoteNode)
        moment = (0 if self.cache is None else self.cache.period(), self._moves)
        if self.cache is None or directory.place is None or directory.place[2] != moment:
            self._locate(directory, moment)
        if directory.place is None:
            return None
        parent, name, _ = directory.place
        return parent, name

    def _locate(self, directory: RemoteNode, moment: tuple[int, int]) -> None:
        """Ask for the places of a directory and of all that it is in."""
        value = self.ask("locate", node=directory.number)
        try:
            for pair in check_list(value, DEPTH_MAX):
                parent, name = check_list(pair, 2)
                above = self._node(parent)
                directory.place = above, check_file_name(name) if name else "", moment
                directory = above
            directory.place = None
        except (Malformed, ValueError):
            raise SysError(EIO) from None

    def stat(self, node: Node) -> Stat:
        assert isinstance(node, RemoteNode)
        cache, known = self.cache, node.stat
        if known is not None and cache is not None and cache.is_current(node):
            return known if known.dev == self.dev else known._replace(dev=self.dev)
        changes, period = self._changes, 0 if cache is None else cache.period()
        stat = self._stat(self.ask("stat", node=node.number))
        if (stat.mode ^ node.mode) & S_IFMT:
            raise SysError(EIO)
        if cache is not None and changes == self._changes:
            cache.update(node, stat, None)
            node.checked = period
        node.mode, node.uid, node.gid = stat.mode, stat.uid, stat.gid
        return stat

    def _stat(self, value: object) -> Stat:
        """EIO for anything else than a file's metadata."""
        try:
            values = [check_int(number, -FILE_MAX, U64) for number in check_list(value, 12)]
            mode, ino, _, nlink, uid, gid, size, atime, mtime, ctime, rdev, blocks = values
        except (Malformed, ValueError):
            raise SysError(EIO) from None
        if not 0 <= size <= FILE_MAX:
            raise SysError(EIO)
        return Stat(mode, ino, self.dev, nlink, uid, gid, size, atime, mtime, ctime, rdev, blocks)

    def readdir(self, directory: Node) -> Sequence[Dirent]:
        assert isinstance(directory, RemoteNode)
        listing = self._listing(directory, wanted=True)
        if listing is not None:
            return listing.dirents
        found: dict[str, Dirent] = {}
        start, page = 0, PAGE
        try:
            while page == PAGE and start < ENTRIES_MAX:
                entries = check_list(self.ask("readdir", node=directory.number, start=start), PAGE)
                for entry in entries:
                    name, ino, kind = check_list(entry, 3)
                    name = check_file_name(name)
                    found[name] = Dirent(name, check_int(ino, 0, U64), check_int(kind, 0, S_IFMT) & S_IFMT)
                page = len(entries)
                start += page
        except (Malformed, ValueError):
            raise SysError(EIO) from None
        return list(found.values())

    def readlink(self, node: Node) -> str:
        assert isinstance(node, RemoteNode)
        if node.target is not None and self.cache is not None and self.cache.is_current(node):
            return node.target
        try:
            target = check_text(self.ask("readlink", node=node.number), PATH_MAX - 1)
        except Malformed:
            raise SysError(EIO) from None
        if node.settled:
            node.target = target
        return target

    def open(self, node: Node, flags: int) -> Handle:
        assert isinstance(node, RemoteNode)
        if flags & (O_ACCMODE | O_TRUNC) == O_RDONLY and self.cache is not None and node.mode & S_IFMT == S_IFREG:
            data = self._contents(self.cache, node)
            if data is not None and self.cache is not None:
                return CachedHandle(self, self.cache, node, data)
        elif flags & O_TRUNC:
            self._change(node)
        return self.open_far(node, flags)

    def open_far(self, node: RemoteNode, flags: int) -> RemoteHandle:
        """Open at the far side."""
        return self._opened(node, self.ask("open", node=node.number, flags=flags & OPEN_FLAGS))

    def hold(self, node: Node) -> Handle:
        assert isinstance(node, RemoteNode)
        return self._opened(node, self.ask("hold", node=node.number))

    def _opened(self, node: RemoteNode, value: object) -> RemoteHandle:
        try:
            return RemoteHandle(self, node, check_int(value, 1, ID_MAX))
        except Malformed:
            raise SysError(EIO) from None

    # Contents of small files.

    def _contents(self, cache: Cache, node: RemoteNode) -> bytes | None:
        """All of a small file: from the cache, or read together with others of its directory. None: open it."""
        if cache.is_current(node):
            assert node.stat is not None
            if (data := node.blocks.get(0)) is not None and len(data) == node.stat.size:
                cache.use(node)
                self._files_ahead.used += node.ahead
                node.ahead = False
                return data
            if node.stat.size > SMALL:
                return None
        wanted = [node, *cache.unread_after(node, self._files_ahead.next() - 1, SMALL, CHUNK)]
        self._files_ahead.asked(len(wanted) - 1)
        changes, period = self._changes, cache.period()
        try:
            answers = check_list(self.ask("contents", nodes=[each.number for each in wanted]), BATCH)
            if changes != self._changes:
                return None
            for each, answer in zip(wanted, answers, strict=False):
                if answer is None:
                    each.settled = False
                    continue
                settled, content, *values = check_list(answer, 14)
                stat = self._stat(values)
                cache.update(each, stat, settled is True)
                each.checked = period
                each.ahead = each is not node
                if settled is True and len(check_data(content, SMALL)) == stat.size:
                    cache.keep(each, 0, check_data(content, SMALL))
        except (Malformed, SysError, ValueError):
            return None  # opening it tells why
        return node.blocks.get(0)

    # Changing.

    def _change(self, *nodes: Node | None) -> None:
        """Forget all that is known of nodes before they are changed."""
        self._changes += 1
        if self.cache is not None:
            for node in nodes:
                assert node is None or isinstance(node, RemoteNode)
                self.cache.changed(node)

    def _entry(self, directory: Node, name: str) -> RemoteNode | None:
        """The node of an entry, if the directory's listing has it."""
        assert isinstance(directory, RemoteNode)
        return None if directory.listing is None else directory.listing.nodes.get(name)

    def create(self, directory: Node, name: str, mode: int, owner: Owner) -> Node:
        return self._make("create", directory, name, mode, owner)

    def mkdir(self, directory: Node, name: str, mode: int, owner: Owner) -> Node:
        return self._make("mkdir", directory, name, mode, owner)

    def _make(self, operation: str, directory: Node, name: str, mode: int, owner: Owner) -> Node:
        self._change(directory)
        return self._node(
            self.ask(operation, node=_number(directory), name=name, mode=mode, uid=owner.uid, gid=owner.gid)
        )

    def symlink(self, directory: Node, name: str, target: str, owner: Owner) -> Node:
        self._change(directory)
        return self._node(
            self.ask("symlink", node=_number(directory), name=name, target=target, uid=owner.uid, gid=owner.gid)
        )

    def link(self, node: Node, directory: Node, name: str) -> None:
        self._change(node, directory)
        self.ask("link", node=_number(node), into=_number(directory), name=name)

    def unlink(self, directory: Node, name: str) -> None:
        self._change(self._entry(directory, name), directory)
        self.ask("unlink", node=_number(directory), name=name)

    def rmdir(self, directory: Node, name: str) -> None:
        self._moves += 1
        self._change(self._entry(directory, name), directory)
        self.ask("rmdir", node=_number(directory), name=name)

    def rename(self, source: Node, old: str, target: Node, new: str, flags: int) -> None:
        self._moves += 1
        self._change(self._entry(source, old), self._entry(target, new), source, target)
        self.ask("rename", node=_number(source), name=old, into=_number(target), new=new, flags=flags)

    def setattr(self, node: Node, change: SetAttr) -> None:
        self._change(node)
        fields = {name: getattr(change, name) for name in ATTRIBUTES}
        self._node(self.ask("setattr", node=_number(node), **fields))

    def statfs(self) -> StatFs:
        try:
            figures = check_list(self.ask("statfs"), 6)
            return StatFs(self.kind, *(check_int(figure, 0, U64) for figure in figures))
        except (Malformed, TypeError, ValueError):
            raise SysError(EIO) from None


def _number(node: Node) -> int:
    assert isinstance(node, RemoteNode)
    return node.number


class RemoteHandle(Handle):
    """A file open at the far side. What is read of it in sequence comes, and is kept, in blocks."""

    __slots__ = ("_end", "_node", "_number", "_server")

    def __init__(self, server: RemoteServer, node: RemoteNode, number: int) -> None:
        self.nonblocking = False
        self._server = server
        self._node = node
        self._number = number
        self._end = -1
        """Where the last read ended."""

    def read(self, offset: int, size: int) -> bytes:
        if offset > FILE_MAX:
            return b""
        left, parts = min(size, READ_MAX), list[bytes]()
        while True:
            wanted = min(left, CHUNK - offset % CHUNK)
            try:
                parts.append(self._part(offset, wanted))
            except SysError:
                if not parts:
                    raise
                break
            offset, left = offset + wanted, left - wanted
            if not left or len(parts[-1]) < wanted:
                break
        return b"".join(parts)

    def _part(self, offset: int, size: int) -> bytes:
        """Read within one block."""
        node, cache = self._node, self._server.cache
        sequential, self._end = offset == self._end, offset + size
        if cache is None or not node.settled or not cache.is_current(node):
            return self._read(offset, size)
        start = offset - offset % CHUNK
        block = node.blocks.get(start)
        if block is None:
            if not sequential:
                return self._read(offset, size)
            block = self._read(start, CHUNK)
            if cache.is_current(node) and node.settled:
                cache.keep(node, start, block)
        return block[offset - start : offset - start + size]

    def _read(self, offset: int, size: int) -> bytes:
        try:
            return check_data(self._server.ask("read", handle=self._number, offset=offset, size=size), size)
        except Malformed:
            raise SysError(EIO) from None

    def write(self, offset: int | None, data: bytes) -> int:
        if offset is not None and offset + len(data) > FILE_MAX:
            raise SysError(EFBIG)
        done = 0
        while True:
            self._server._change(self._node)
            part = bytes(data[done : done + CHUNK])
            at = None if offset is None else offset + done
            try:
                count = self._figure("write", len(part), offset=at, data=part)
            except SysError:
                if not done:
                    raise
                return done
            done += count
            if done == len(data) or count < len(part):
                return done

    def truncate(self, size: int) -> None:
        self._server._change(self._node)
        self._server.ask("truncate", handle=self._number, size=size)

    def size(self) -> int:
        return self._figure("size", FILE_MAX)

    def seek_data(self, offset: int, *, hole: bool) -> int:
        return self._figure("seek_data", FILE_MAX, offset=offset, hole=hole)

    def sync(self) -> None:
        self._server.ask("sync", handle=self._number)

    def _figure(self, operation: str, limit: int, **fields: object) -> int:
        try:
            return check_int(self._server.ask(operation, handle=self._number, **fields), 0, limit)
        except Malformed:
            raise SysError(EIO) from None

    def close(self) -> None:
        self._server.close_handle(self._number)


class CachedHandle(Handle):
    """A small file opened for reading, all of which is here. When that may no longer hold it is opened at the far side.

    What was read stays readable if that can't be: the file was removed or replaced while it was open.
    """

    __slots__ = ("_cache", "_data", "_far", "_gone", "_node", "_server")

    def __init__(self, server: RemoteServer, cache: Cache, node: RemoteNode, data: bytes) -> None:
        self.nonblocking = False
        self._server = server
        self._cache = cache
        self._node = node
        self._data = data
        self._far: RemoteHandle | None = None
        self._gone = False

    def _current(self) -> RemoteHandle | None:
        """The handle at the far side, if one is needed."""
        node = self._node
        if self._far is None and not self._gone:
            if self._cache.is_current(node) and node.blocks.get(0) is self._data:
                return None
            try:
                self._far = self._server.open_far(node, O_RDONLY)
            except SysError:
                self._gone = True
        return self._far

    def read(self, offset: int, size: int) -> bytes:
        far = self._current()
        return self._data[offset : offset + size] if far is None else far.read(offset, size)

    def size(self) -> int:
        far = self._current()
        return len(self._data) if far is None else far.size()

    def seek_data(self, offset: int, *, hole: bool) -> int:
        far = self._current()
        return super().seek_data(offset, hole=hole) if far is None else far.seek_data(offset, hole=hole)

    def close(self) -> None:
        if self._far is not None:
            self._far.close()
