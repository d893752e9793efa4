"""The far side of a remote file server: any Python object with the file-server methods, for one untrusted peer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, cast

from belljar.abi.errno import EBADF, EFBIG, EINVAL, EIO, ENAMETOOLONG, ENFILE, EROFS, ESTALE, from_host
from belljar.abi.errors import Refused, SysError
from belljar.abi.flags import FILE_MAX, O_RDONLY, PATH_MAX, S_IFMT
from belljar.abi.paths import fsencode
from belljar.abi.records import Dirent, Owner, SetAttr, Stat
from belljar.kernel.fs.remote_message import (
    ATTRIBUTES,
    BATCH,
    CHUNK,
    DEPTH_MAX,
    ENTRIES_MAX,
    ID_MAX,
    LET_GO_MAX,
    OPEN_FLAGS,
    PAGE,
    SCAN_MAX,
    SCANS,
    SMALL,
    U64,
    Malformed,
    Message,
    check_data,
    check_file_name,
    check_int,
    check_list,
    check_text,
)
from belljar.kernel.vfs.server import FileServer, Handle, Node, Scan

NODES_MAX: Final = 200_000
HANDLES_MAX: Final = 4096


class _Kept:
    """An open file, and how many branches of the peer have it open."""

    __slots__ = ("handle", "users")

    def __init__(self, handle: Handle) -> None:
        self.handle = handle
        self.users = 1

    def release(self) -> None:
        self.users -= 1
        if not self.users:
            self.handle.close()


class Completed:
    """Wraps an object with some of the methods; the others are those of the base class.

    So a server that can't be written needs no method that writes.
    """

    def __init__(self, made: object, base: type) -> None:
        self._made = made
        self._base = base

    def __getattr__(self, name: str) -> Any:
        if hasattr(self._made, name):
            return getattr(self._made, name)
        default = getattr(self._base, name)
        return partial(default, self) if callable(default) else default


class ReadOnlyHandle(Handle):
    """Default methods of an open file: it can't be written."""

    __slots__ = ()

    def write(self, offset: int | None, data: bytes) -> int:
        raise SysError(EROFS)

    def truncate(self, size: int) -> None:
        raise SysError(EROFS)


class Export:
    """A server, answering requests of one untrusted peer.

    `report` is told of exceptions that are the server's own bugs; the peer sees EIO.
    """

    def __init__(self, server: FileServer, report: Callable[[BaseException], None] | None = None) -> None:
        self._server = server = complete(server)
        self._report = report
        self._nodes: dict[int, Node] = {}
        self._numbers: dict[int, int] = {}
        self._times: dict[int, int] = {}
        self._handles: dict[int, _Kept] = {}
        self._listing: tuple[Node | None, Sequence[Dirent]] = (None, ())
        self._next = 1
        self._operations: dict[str, tuple[frozenset[str], Callable[[Message], object]]] = {
            "nothing": (frozenset(), lambda _message: None),
            "root": (frozenset(), lambda _message: self._give(server.root)),
            "walk": (frozenset({"node", "name"}), self._walk),
            "locate": (frozenset({"node"}), self._locate),
            "stat": (frozenset({"node"}), self._stat),
            "readdir": (frozenset({"node", "start"}), self._readdir),
            "scan": (frozenset({"nodes"}), self._scan),
            "contents": (frozenset({"nodes"}), self._contents),
            "readlink": (frozenset({"node"}), lambda m: fsencode(server.readlink(self._node(m["node"])))),
            "open": (frozenset({"node", "flags"}), self._open),
            "hold": (frozenset({"node"}), lambda m: self._keep(lambda: server.hold(self._node(m["node"])))),
            "create": (frozenset({"node", "name", "mode", "uid", "gid"}), lambda m: self._make(server.create, m)),
            "mkdir": (frozenset({"node", "name", "mode", "uid", "gid"}), lambda m: self._make(server.mkdir, m)),
            "symlink": (frozenset({"node", "name", "target", "uid", "gid"}), self._symlink),
            "link": (frozenset({"node", "into", "name"}), self._link),
            "unlink": (
                frozenset({"node", "name"}),
                lambda m: server.unlink(self._node(m["node"]), check_file_name(m["name"])),
            ),
            "rmdir": (
                frozenset({"node", "name"}),
                lambda m: server.rmdir(self._node(m["node"]), check_file_name(m["name"])),
            ),
            "rename": (frozenset({"node", "name", "into", "new", "flags"}), self._rename),
            "setattr": (frozenset({"node", *ATTRIBUTES}), self._setattr),
            "statfs": (frozenset(), lambda _message: [min(max(figure, 0), U64) for figure in server.statfs()[1:]]),
            "read": (frozenset({"handle", "offset", "size"}), self._read),
            "write": (frozenset({"handle", "offset", "data"}), self._write),
            "truncate": (frozenset({"handle", "size"}), self._truncate),
            "size": (frozenset({"handle"}), lambda m: self._handle(m["handle"]).size()),
            "seek_data": (frozenset({"handle", "offset", "hole"}), self._seek_data),
            "sync": (frozenset({"handle"}), lambda m: self._handle(m["handle"]).sync()),
        }

    def serve(self, message: object, refused: Callable[[Refused], None] | None = None) -> Message:
        """The reply to one request; never raises for anything the peer or the server did.

        `refused` is told what a rule of the server's forbade.
        """
        try:
            return {"ok": self._perform(message)}
        except Refused as error:
            if refused is not None:
                refused(error)
            return {"errno": error.errno, "why": error.why.encode()}
        except SysError as error:
            return {"errno": error.errno}
        except Malformed:
            return {"errno": EINVAL}
        except OSError as error:
            return {"errno": from_host(error.errno)}
        except Exception as error:  # noqa: BLE001 - the frame that owns somebody else's server: its bug is an EIO
            if self._report is not None:
                self._report(error)
            return {"errno": EIO}

    @property
    def server(self) -> FileServer:
        return self._server

    def node(self, number: int) -> Node | None:
        """The node that the peer knows by a number."""
        return self._nodes.get(number)

    def branch(self) -> Export:
        """A copy for a fork of this peer: it has the same nodes and handles, and releases them itself."""
        branch = Export(self._server, self._report)
        branch._nodes, branch._numbers = self._nodes.copy(), self._numbers.copy()
        branch._times, branch._next = self._times.copy(), self._next
        branch._handles = self._handles.copy()
        for kept in branch._handles.values():
            kept.users += 1
        return branch

    def close(self) -> None:
        """Release everything the peer held, when it is gone."""
        handles, self._handles = self._handles, {}
        for kept in handles.values():
            kept.release()
        self._nodes.clear()
        self._numbers.clear()
        self._times.clear()

    def _perform(self, message: object) -> object:
        if not isinstance(message, Mapping):
            raise Malformed
        operation = message.get("op")
        if type(operation) is not str or operation not in self._operations:
            raise Malformed
        wanted, perform = self._operations[operation]
        if message.keys() - {"op", "forget", "close"} != wanted:
            raise Malformed
        for number in check_list(message.get("close", []), LET_GO_MAX):
            kept = self._handles.pop(check_int(number, 1, ID_MAX), None)
            if kept is not None:
                kept.release()
        for number in check_list(message.get("forget", []), LET_GO_MAX):
            self._forget(number)
        return perform(message)

    # Numbers for nodes and handles.

    def _give(self, node: Node) -> list[int]:
        number = self._numbers.get(id(node))
        if number is None:
            if len(self._nodes) >= NODES_MAX:
                raise SysError(ENFILE)
            number = self._new_number()
            self._nodes[number] = node
            self._numbers[id(node)] = number
            self._times[number] = 0
        self._times[number] += 1
        return [number, node.mode, node.uid, node.gid]

    def _forget(self, value: object) -> None:
        """The peer no longer uses a node that it was given so many times; answers on their way still count."""
        pair = check_list(value, 2)
        if len(pair) != 2:
            raise Malformed
        number, times = check_int(pair[0], 1, ID_MAX), check_int(pair[1], 1, ID_MAX)
        node = self._nodes.get(number)
        if node is None or node is self._server.root:
            return
        self._times[number] -= times
        if self._times[number] <= 0:
            del self._nodes[number]
            del self._times[number]
            del self._numbers[id(node)]

    def _new_number(self) -> int:
        self._next += 1
        return self._next - 1

    def _node(self, value: object) -> Node:
        node = self._nodes.get(check_int(value, 1, ID_MAX))
        if node is None:
            raise SysError(ESTALE)
        return node

    def _handle(self, value: object) -> Handle:
        kept = self._handles.get(check_int(value, 1, ID_MAX))
        if kept is None:
            raise SysError(EBADF)
        return kept.handle

    # Operations that check more than a node and a name.

    def _walk(self, message: Message) -> object:
        return self._give(self._server.walk(self._node(message["node"]), check_file_name(message["name"])))

    def _locate(self, message: Message) -> object:
        """The parent and the name there of a directory, of its parent, and so on up to the root."""
        chain: list[object] = []
        found = self._server.locate(self._node(message["node"]))
        while found is not None:
            if len(chain) == DEPTH_MAX:
                raise SysError(ENAMETOOLONG)
            chain.append([self._give(found[0]), fsencode(found[1])])
            found = self._server.locate(found[0]) if found[1] else None
        return chain

    def _stat(self, message: Message) -> object:
        found: tuple[Any, ...] = self._server.stat(self._node(message["node"]))
        return _bounded(found if isinstance(found, Stat) else Stat(*found))

    def _readdir(self, message: Message) -> object:
        """One page of a listing; the rest is kept for the next question, so that it is one moment's."""
        node, start = self._node(message["node"]), check_int(message["start"], 0, ENTRIES_MAX)
        if start == 0 or self._listing[0] is not node:
            self._listing = (node, self._server.readdir(node))
        found = self._listing[1][start : start + PAGE]
        if len(found) < PAGE:
            self._listing = (None, ())
        return [[fsencode(name), ino & FILE_MAX, kind & S_IFMT] for name, ino, kind in found]

    def _scan(self, message: Message) -> object:
        """Directories with the stats of their entries, as many as fit into one message."""
        found: list[object] = []
        room = SCAN_MAX
        for pair in check_list(message["nodes"], SCANS):
            number, digest = check_list(pair, 2)
            try:
                node = self._node(number)
                version = self._server.listing_version(node) & FILE_MAX
                if version and version == digest:
                    found.append([version])
                    continue
                scan = self._server.scan(node)
            except (SysError, OSError) as error:
                found.append(error.errno != EFBIG)
                continue
            room -= len(scan.entries) if scan is not None else 0
            if found and room < 0:
                break
            found.append(None if scan is None else self._scanned(scan, version, check_int(digest, 0, U64)))
        return found

    def _scanned(self, scan: Scan, version: int, known: int) -> object:
        """The digest alone if it is known already."""
        # The time of the last access is no change.
        digest = (
            version or hash((scan.exact, *((name, stat[:7], stat[8:]) for name, _, stat in scan.entries))) & FILE_MAX
        )
        if digest == known:
            return [digest]
        settled = self._server.settled
        rows = [
            [fsencode(name), 0 if node is None else self._give(node)[0], settled(stat), *_bounded(stat)]
            for name, node, stat in scan.entries
        ]
        return [digest, scan.exact, rows]

    def _contents(self, message: Message) -> object:
        """Stats and contents of small files, as many as fit into one message; None for one that can't be read."""
        found: list[object] = []
        room = CHUNK
        numbers = check_list(message["nodes"], BATCH)
        if len(numbers) > 1:
            self._server.prefetch([self._nodes[n] for n in numbers if type(n) is int and n in self._nodes])
        for number in numbers:
            try:
                settled, data, stat = self._small_file(self._node(number))
            except (SysError, OSError) as error:
                found.append(None)
                if error.errno == EIO:
                    break  # the others may take as long to fail
                continue
            room -= len(data)
            if found and room < 0:
                break
            found.append([settled, data, *_bounded(stat)])
        return found

    def _small_file(self, node: Node) -> tuple[bool, bytes, Stat]:
        """Read a file: whether its contents may be kept, the contents (b"" of a large one), and its stat."""
        handle = complete_handle(self._server.open(node, O_RDONLY))
        try:
            stat = self._server.stat(node)  # before it is read: a change from now on will show
            settled = self._server.settled(stat)
            if stat.size > SMALL:
                return settled, b"", stat
            data = handle.read(0, SMALL)
            return settled and len(data) == stat.size, data, stat
        finally:
            handle.close()

    def _open(self, message: Message) -> object:
        flags = check_int(message["flags"], 0, OPEN_FLAGS)
        if flags & ~OPEN_FLAGS:
            raise Malformed
        node = self._node(message["node"])
        return self._keep(lambda: self._server.open(node, flags))

    def _keep(self, open_it: Callable[[], Handle]) -> int:
        if len(self._handles) >= HANDLES_MAX:
            raise SysError(ENFILE)
        handle = complete_handle(open_it())
        number = self._new_number()
        self._handles[number] = _Kept(handle)
        return number

    def _make(self, make: Callable[[Node, str, int, Owner], Node], message: Message) -> object:
        mode = check_int(message["mode"], 0, 0o177777)
        return self._give(make(self._node(message["node"]), check_file_name(message["name"]), mode, _owner(message)))

    def _symlink(self, message: Message) -> object:
        target = check_text(message["target"], PATH_MAX - 1)
        node, name = self._node(message["node"]), check_file_name(message["name"])
        return self._give(self._server.symlink(node, name, target, _owner(message)))

    def _link(self, message: Message) -> None:
        self._server.link(self._node(message["node"]), self._node(message["into"]), check_file_name(message["name"]))

    def _rename(self, message: Message) -> None:
        source, target = self._node(message["node"]), self._node(message["into"])
        self._server.rename(
            source,
            check_file_name(message["name"]),
            target,
            check_file_name(message["new"]),
            check_int(message["flags"], 0, 3),
        )

    def _setattr(self, message: Message) -> object:
        limits = {
            "mode": 0o7777,
            "uid": 1 << 32,
            "gid": 1 << 32,
            "size": FILE_MAX,
            "atime": FILE_MAX,
            "mtime": FILE_MAX,
        }
        values = {
            name: None if message[name] is None else check_int(message[name], -FILE_MAX if "time" in name else 0, limit)
            for name, limit in limits.items()
        }
        node = self._node(message["node"])
        self._server.setattr(node, SetAttr(**values))
        return self._give(node)

    def _read(self, message: Message) -> object:
        offset, size = check_int(message["offset"], 0, FILE_MAX), check_int(message["size"], 0, CHUNK)
        return bytes(self._handle(message["handle"]).read(offset, size)[:size])

    def _write(self, message: Message) -> object:
        offset = None if message["offset"] is None else check_int(message["offset"], 0, FILE_MAX)
        data = check_data(message["data"], CHUNK)
        return self._handle(message["handle"]).write(offset, data)

    def _truncate(self, message: Message) -> None:
        self._handle(message["handle"]).truncate(check_int(message["size"], 0, FILE_MAX))

    def _seek_data(self, message: Message) -> object:
        if type(message["hole"]) is not bool:
            raise Malformed
        return self._handle(message["handle"]).seek_data(
            check_int(message["offset"], 0, FILE_MAX), hole=message["hole"]
        )


def _bounded(stat: Stat) -> list[int]:
    """A stat whose numbers fit into 63 bits, whatever the file system says: times and sizes end where Linux's do."""
    if min(stat) >= -FILE_MAX and max(stat) <= FILE_MAX and stat.size >= 0:
        return list(stat)
    mode, ino, *others = (int(value) for value in stat)
    bounded = [mode, ino & FILE_MAX, *(min(max(value, -FILE_MAX), FILE_MAX) for value in others)]
    bounded[6] = max(bounded[6], 0)
    return bounded


def _owner(message: Message) -> Owner:
    return Owner(check_int(message["uid"], 0, 1 << 32), check_int(message["gid"], 0, 1 << 32))


def complete(made: object) -> FileServer:
    """A server with all methods, of an object that has some of them."""
    if isinstance(made, FileServer):
        return made
    return cast("FileServer", made if isinstance(made, Completed) else Completed(made, FileServer))


def complete_handle(made: object) -> Handle:
    return made if isinstance(made, Handle) else cast("Handle", Completed(made, ReadOnlyHandle))
