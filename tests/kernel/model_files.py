"""The simplest model of a file system: nested dicts, told only of calls that succeeded, so it knows no errors."""

from dataclasses import dataclass, field
from typing import Any

from belljar.abi.flags import O_APPEND, O_CREAT, O_NOFOLLOW, O_PATH, O_TRUNC, RENAME_EXCHANGE, S_IFMT, S_IFREG


@dataclass(eq=False)
class Inode:
    data: bytearray | str | dict[str, "Inode"]
    """A file's bytes, a symlink's target, or a directory's entries."""
    parent: "Inode | None" = None
    special: bool = False


@dataclass
class Opened:
    inode: Inode
    flags: int
    offset: int = 0


@dataclass
class Model:
    root: Inode = field(default_factory=lambda: Inode({}))
    slots: dict[int, Opened] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.cwd = self.root

    def find(self, path: str, *, follow: bool = True, start: Inode | None = None) -> Inode:
        directory, name = self.place(path, follow=follow, start=start)
        return directory if not name else entries(directory)[name]

    def place(self, path: str, *, follow: bool = False, start: Inode | None = None) -> tuple[Inode, str]:
        """The directory and name a path ends in; the name is "" if that is `.`, `..` or the root."""
        here = self.root if path.startswith("/") else (start or self.cwd)
        todo = path.split("/")
        follow = follow or path.endswith("/")
        while any(todo):
            name, *todo = todo
            if name in ("", "."):
                continue
            if name == "..":
                here = here.parent or here
                continue
            last = not any(todo)
            child = entries(here).get(name)
            if child is not None and isinstance(child.data, str) and (not last or follow):
                return self.place("/".join([child.data, *todo]), follow=follow, start=here)
            if last:
                return here, name
            assert child is not None
            here = child
        return here, ""

    def apply(self, operation: str, arguments: tuple[Any, ...], answer: Any) -> None:
        """Do what a call did that answered so; calls that change nothing have no method here."""
        action = getattr(self, "do_" + operation, None)
        if action is not None:
            action(*arguments)
        if operation in ("read", "pread") and self.slots[arguments[0]].inode.special:
            return
        if operation == "read":
            assert answer == self.do_pread(arguments[0], arguments[1], self.slots[arguments[0]].offset)
            self.slots[arguments[0]].offset += len(answer)
        elif operation == "pread":
            assert answer == self.do_pread(*arguments)
        elif operation == "seek":
            self.slots[arguments[0]].offset = answer

    def do_open(self, slot: int, path: str, flags: int, _mode: int) -> None:
        follow = not flags & O_NOFOLLOW
        directory, name = self.place(path, follow=follow)
        if name and flags & O_CREAT and not flags & O_PATH and name not in entries(directory):
            entries(directory)[name] = Inode(bytearray())
        inode = entries(directory)[name] if name else directory
        if flags & O_TRUNC and not flags & O_PATH and isinstance(inode.data, bytearray):
            inode.data.clear()
        self.slots[slot] = Opened(inode, flags)

    def do_close(self, slot: int) -> None:
        del self.slots[slot]

    def do_pread(self, slot: int, size: int, offset: int) -> bytes:
        data = self.slots[slot].inode.data
        assert isinstance(data, bytearray)
        return bytes(data[offset : offset + size])

    def do_write(self, slot: int, data: bytes) -> None:
        file = self.slots[slot]
        file.offset = put(file, data, file.offset)

    def do_pwrite(self, slot: int, data: bytes, offset: int) -> None:
        put(self.slots[slot], data, offset)

    def do_ftruncate(self, slot: int, size: int) -> None:
        resize(self.slots[slot].inode, size)

    def do_truncate(self, path: str, size: int) -> None:
        resize(self.find(path), size)

    def do_mkdir(self, path: str, _mode: int) -> None:
        directory, name = self.place(path.rstrip("/"))
        entries(directory)[name] = Inode({}, parent=directory)

    def do_mknod(self, path: str, mode: int) -> None:
        directory, name = self.place(path)
        entries(directory)[name] = Inode(bytearray(), special=mode & S_IFMT not in (0, S_IFREG))

    def do_symlink(self, target: str, path: str) -> None:
        directory, name = self.place(path)
        entries(directory)[name] = Inode(target)

    def do_link(self, old: str, new: str, follow: bool) -> None:
        inode = self.find(old, follow=follow)
        directory, name = self.place(new)
        entries(directory)[name] = inode

    def do_unlink(self, path: str) -> None:
        directory, name = self.place(path)
        del entries(directory)[name]

    def do_rmdir(self, path: str) -> None:
        directory, name = self.place(path.rstrip("/"))
        del entries(directory)[name]

    def do_rename(self, old: str, new: str, flags: int) -> None:
        source, a = self.place(old.rstrip("/"))
        target, b = self.place(new.rstrip("/"))
        moved, other = entries(source)[a], entries(target).get(b)
        if moved is other:
            return
        del entries(source)[a]
        entries(target)[b] = moved
        if isinstance(moved.data, dict):
            moved.parent = target
        if flags & RENAME_EXCHANGE:
            assert other is not None
            entries(source)[a] = other
            if isinstance(other.data, dict):
                other.parent = source

    def do_chdir(self, path: str) -> None:
        self.cwd = self.find(path)

    def tree(self) -> dict[str, bytes | str | None]:
        """Every path with a file's bytes, a symlink's target, or None."""
        found: dict[str, bytes | str | None] = {}
        todo = [("", self.root)]
        while todo:
            path, directory = todo.pop()
            for name, inode in entries(directory).items():
                match inode.data:
                    case dict():
                        found[f"{path}/{name}"] = None
                        todo.append((f"{path}/{name}", inode))
                    case str():
                        found[f"{path}/{name}"] = inode.data
                    case bytearray():
                        found[f"{path}/{name}"] = None if inode.special else bytes(inode.data)
        return found


def entries(directory: Inode) -> dict[str, Inode]:
    assert isinstance(directory.data, dict)
    return directory.data


def put(file: Opened, data: bytes, offset: int) -> int:
    held = file.inode.data
    assert isinstance(held, bytearray)
    if file.inode.special or not data:
        return offset
    if file.flags & O_APPEND:
        offset = len(held)
    held.extend(bytes(max(0, offset - len(held))))
    held[offset : offset + len(data)] = data
    return offset + len(data)


def resize(inode: Inode, size: int) -> None:
    assert isinstance(inode.data, bytearray)
    del inode.data[size:]
    inode.data.extend(bytes(size - len(inode.data)))
