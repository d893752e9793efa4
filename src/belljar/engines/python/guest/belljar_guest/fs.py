"""Serve a tree of files to the sandbox: `serve("name", tree)`, then `mount /mnt/srv/name DIRECTORY` anywhere.

A tree is a dict. Its values are files: bytes or str, or a function that gives them anew each time; `File(read, write)`,
if it can be written; or directories: dicts, or `Directory(function)`, which gives a dict anew each time.
"""

import errno
import os
import struct
import time

_VERSION = b"9P2000.L"
_MESSAGE = 64 << 10
_DIRECTORY, _FILE = 0o040000, 0o100000
_HEADER = struct.Struct("<IBH")
_QID = struct.Struct("<BIQ")
_BASIC = 0x7FF
_TRUNCATE = 0o1000
_ERRNOS = {
    "EPERM": 1,
    "ENOENT": 2,
    "EIO": 5,
    "EBADF": 9,
    "EAGAIN": 11,
    "EACCES": 13,
    "EBUSY": 16,
    "EEXIST": 17,
    "ENOTDIR": 20,
    "EISDIR": 21,
    "EINVAL": 22,
    "EFBIG": 27,
    "ENOSPC": 28,
    "EROFS": 30,
    "ENOSYS": 38,
    "ENOTEMPTY": 39,
    "ETIMEDOUT": 110,
}
"""Linux's numbers, which the protocol has; this interpreter's are others."""


class File:
    """A file by functions: `read()` gives its contents, `write(data)` takes new ones when the file is closed."""

    def __init__(self, read=lambda: b"", write=None, mode=None):
        self.read = read
        self.write = write
        self.mode = mode if mode is not None else 0o644 if write else 0o444


class Directory:
    """A directory by a function that gives its entries, as a dict."""

    def __init__(self, entries, mode=0o555):
        self.entries = entries
        self.mode = mode


class _Node:
    """What a fid stands for."""

    def __init__(self, number, value, parent):
        self.number = number
        self.value = value
        self.parent = parent
        self.children = {}
        self.data = None
        self.written = False

    @property
    def is_directory(self):
        return isinstance(self.value, (dict, Directory))

    def entries(self):
        found = self.value if isinstance(self.value, dict) else self.value.entries()
        return {str(name): value for name, value in found.items()}

    def contents(self):
        value = self.value.read if isinstance(self.value, File) else self.value
        found = value() if callable(value) else value
        return found.encode() if isinstance(found, str) else bytes(found)

    def mode(self):
        if self.is_directory:
            return _DIRECTORY | (self.value.mode if isinstance(self.value, Directory) else 0o555)
        return _FILE | (self.value.mode if isinstance(self.value, File) else 0o444)

    def qid(self):
        return _QID.pack(0x80 if self.is_directory else 0, 0, self.number)


class Server:
    """The protocol over a tree: `answer(request)` gives the reply to one message."""

    def __init__(self, tree):
        self._count = 1
        self._root = _Node(1, tree, None)
        self._fids = {}
        self._began = int(time.time())
        self._operations = {
            8: self._statfs,
            12: self._open,
            24: self._getattr,
            26: self._setattr,
            40: self._readdir,
            50: self._nothing,
            100: self._version,
            104: self._attach,
            108: self._nothing,
            110: self._walk,
            116: self._read,
            118: self._write,
            120: self._clunk,
        }

    def answer(self, request):
        _, kind, tag = _HEADER.unpack_from(request)
        try:
            operation = self._operations.get(kind)
            if operation is None:
                raise OSError(errno.EROFS, "the library serves no such request")
            reply, kind = operation(request[_HEADER.size :]), kind + 1
        except OSError as error:
            reply, kind = struct.pack("<I", _ERRNOS.get(errno.errorcode.get(error.errno), 5)), 7
        except Exception:  # a function of the program's failed
            import traceback

            traceback.print_exc()
            reply, kind = struct.pack("<I", _ERRNOS["EIO"]), 7
        return _HEADER.pack(_HEADER.size + len(reply), kind, tag) + reply

    def _node(self, fid):
        if fid not in self._fids:
            raise OSError(errno.EBADF, "no such fid")
        return self._fids[fid]

    def _child(self, node, name, value):
        known = node.children.get(name)
        if known is None or known.is_directory != isinstance(value, (dict, Directory)):
            self._count += 1
            known = node.children[name] = _Node(self._count, value, node)
        known.value = value
        return known

    def _version(self, body):
        (size,) = struct.unpack_from("<I", body)
        self._fids.clear()
        return struct.pack("<IH", min(size, _MESSAGE), len(_VERSION)) + _VERSION

    def _attach(self, body):
        (fid,) = struct.unpack_from("<I", body)
        self._fids[fid] = self._root
        return self._root.qid()

    def _walk(self, body):
        fid, new, count = struct.unpack_from("<IIH", body)
        node, at, qids = self._node(fid), 10, []
        for _ in range(count):
            (length,) = struct.unpack_from("<H", body, at)
            name = body[at + 2 : at + 2 + length].decode("utf-8", "surrogateescape")
            at += 2 + length
            if not node.is_directory:
                raise OSError(errno.ENOTDIR, name)
            if name == "..":
                node = node.parent or node
            else:
                entries = node.entries()
                if name not in entries:
                    raise OSError(errno.ENOENT, name)
                node = self._child(node, name, entries[name])
            qids.append(node.qid())
        self._fids[new] = node
        if not count:  # a further fid of the same file, to be opened: what is written is its own
            copy = self._fids[new] = _Node(node.number, node.value, node.parent)
            copy.children = node.children
        return struct.pack("<H", len(qids)) + b"".join(qids)

    def _getattr(self, body):
        node = self._node(struct.unpack_from("<I", body)[0])
        size = 0 if node.is_directory else len(node.contents() if node.data is None else node.data)
        user, group = os.getuid(), os.getgid()
        links = 2 if node.is_directory else 1
        times = (self._began, 0) * 3 + (0, 0)
        fixed = struct.pack("<III", node.mode(), user, group)
        return (
            struct.pack("<Q", _BASIC)
            + node.qid()
            + fixed
            + struct.pack("<15Q", links, 0, size, 4096, (size + 511) // 512, *times, 0, 0)
        )

    def _setattr(self, body):
        fid, valid, _, _, _, size = struct.unpack_from("<IIIIIQ", body)
        node = self._node(fid)
        if valid & 8:  # the size
            if not isinstance(node.value, File) or node.value.write is None:
                raise OSError(errno.EACCES, "read-only")
            data = bytearray(node.contents() if node.data is None else node.data)[:size]
            data.extend(bytes(size - len(data)))
            if node.data is None:
                node.value.write(bytes(data))
            else:
                node.data, node.written = data, True
        return b""

    def _statfs(self, body):
        return struct.pack("<IIQQQQQQI", 0x01021997, 4096, 0, 0, 0, 0, 0, 0, 255)

    def _open(self, body):
        fid, flags = struct.unpack_from("<II", body)
        node = self._node(fid)
        if node.is_directory:
            node.data = list(node.entries().items())
            return node.qid() + bytes(4)
        if flags & 3 and (not isinstance(node.value, File) or node.value.write is None):
            raise OSError(errno.EACCES, "read-only")
        node.data = bytearray(b"" if flags & _TRUNCATE and flags & 3 else node.contents())
        node.written = bool(flags & _TRUNCATE and flags & 3)
        return node.qid() + bytes(4)

    def _readdir(self, body):
        fid, offset, count = struct.unpack_from("<IQI", body)
        node, parts = self._node(fid), []
        for index, (name, value) in enumerate(node.data[offset:], offset):
            child, raw = self._child(node, name, value), name.encode("utf-8", "surrogateescape")
            entry = child.qid() + struct.pack("<QBH", index + 1, child.mode() >> 12, len(raw)) + raw
            count -= len(entry)
            if count < 0:
                break
            parts.append(entry)
        data = b"".join(parts)
        return struct.pack("<I", len(data)) + data

    def _read(self, body):
        fid, offset, count = struct.unpack_from("<IQI", body)
        data = bytes(self._node(fid).data[offset : offset + count])
        return struct.pack("<I", len(data)) + data

    def _write(self, body):
        fid, offset, count = struct.unpack_from("<IQI", body)
        node, data = self._node(fid), body[16 : 16 + count]
        if len(node.data) < offset:
            node.data.extend(bytes(offset - len(node.data)))
        node.data[offset : offset + len(data)] = data
        node.written = True
        return struct.pack("<I", len(data))

    def _clunk(self, body):
        (fid,) = struct.unpack_from("<I", body)
        node = self._node(fid)
        del self._fids[fid]
        if node.written:
            node.written = False
            node.value.write(bytes(node.data))
        return b""

    def _nothing(self, body):
        return b""


def serve(name, tree, *, replace=True):
    """Serve a tree under a name in /mnt/srv, until the program ends."""
    path = name if "/" in name else f"/mnt/srv/{name}"
    if replace:
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
    os.write(fd, b"9p")
    server, held = Server(tree), bytearray()
    while data := os.read(fd, _MESSAGE):
        held += data
        while len(held) >= 4 and len(held) >= (size := int.from_bytes(held[:4], "little")) >= _HEADER.size:
            answer = server.answer(bytes(held[:size]))
            del held[:size]
            while answer:
                answer = answer[os.write(fd, answer) :]
