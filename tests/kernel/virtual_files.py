"""Our kernel behind the same calls as `real_files.Real`, so that the two can be compared answer by answer."""

from collections.abc import Callable
from errno import EBADF
from typing import Any

from belljar.abi.errors import SysError
from belljar.abi.flags import O_NONBLOCK, O_PATH, S_IFIFO
from belljar.abi.records import Stat
from belljar.kernel.kernel import Kernel
from belljar.kernel.machine import virtual_machine
from belljar.kernel.vfs.credentials import Credentials
from belljar.kernel.vfs.openfile import OpenFile
from belljar.kernel.vfs.server import FileServer
from tests.kernel.real_files import MARK

Answer = Any


class Virtual:
    """A process's files over one root server."""

    def __init__(self, server: FileServer) -> None:
        self.kernel = Kernel(virtual_machine(), server)
        self.view = self.kernel.init.fs.fork()
        self.view.umask = 0
        self._files: dict[int, OpenFile] = {}

    def call(self, operation: str, *arguments: Any) -> Answer:
        method: Callable[..., Answer] = getattr(self, "do_" + operation)
        try:
            return method(*arguments)
        except SysError as error:
            return "!" + error.name

    def close(self) -> None:
        for slot in list(self._files):
            self.do_close(slot)

    def do_become(self, uid: int, gid: int) -> None:
        self.view.credentials = Credentials(uid, gid)

    def do_umask(self, mask: int) -> None:
        self.view.umask = mask

    def do_open(self, slot: int, path: str, flags: int, mode: int) -> None:
        self._files[slot] = self.view.open(path, flags | O_NONBLOCK, mode).retain()

    def do_close(self, slot: int) -> None:
        self._files.pop(slot).release()

    def do_read(self, slot: int, size: int) -> bytes:
        return self._files[slot].read(size)

    def do_write(self, slot: int, data: bytes) -> int:
        return self._files[slot].write(data)

    def do_pread(self, slot: int, size: int, offset: int) -> bytes:
        return self._files[slot].pread(size, offset)

    def do_pwrite(self, slot: int, data: bytes, offset: int) -> int:
        return self._files[slot].pwrite(data, offset)

    def do_seek(self, slot: int, offset: int, whence: int) -> int:
        return self._files[slot].seek(offset, whence)

    def do_ftruncate(self, slot: int, size: int) -> None:
        self._files[slot].truncate(size)

    def do_fstat(self, slot: int) -> Answer:
        return describe(self._files[slot].stat())

    def do_fchmod(self, slot: int, mode: int) -> None:
        file = self._files[slot]
        if file.flags & O_PATH:
            raise SysError(EBADF)
        self.view.set_mode(file.place, mode, "")

    def do_stat(self, path: str) -> Answer:
        return describe(self.view.stat(path))

    def do_lstat(self, path: str) -> Answer:
        return describe(self.view.stat(path, follow=False))

    def do_same(self, one: str, two: str) -> bool:
        return self.view.stat(one, follow=False).ino == self.view.stat(two, follow=False).ino

    def do_readlink(self, path: str) -> str:
        return self.view.readlink(path)

    def do_readdir(self, path: str) -> Answer:
        entries = self.view.readdir(path)
        for entry in entries:
            # What the real side does for each entry: it needs search permission.
            stat = self.view.stat(f"{path}/{entry.name}", follow=False)
            assert (stat.ino, stat.kind) == (entry.ino, entry.kind)
        return sorted([entry.name, entry.kind] for entry in entries)

    def do_mkdir(self, path: str, mode: int) -> None:
        self.view.mkdir(path, mode)

    def do_mknod(self, path: str, mode: int) -> None:
        self.view.mknod(path, mode)

    def do_rmdir(self, path: str) -> None:
        self.view.rmdir(path)

    def do_unlink(self, path: str) -> None:
        self.view.unlink(path)

    def do_symlink(self, target: str, path: str) -> None:
        self.view.symlink(target, path)

    def do_link(self, old: str, new: str, follow: bool) -> None:
        self.view.link(old, new, follow=follow)

    def do_rename(self, old: str, new: str, flags: int) -> None:
        self.view.rename(old, new, flags)

    def do_chmod(self, path: str, mode: int) -> None:
        self.view.chmod(path, mode)

    def do_chown(self, path: str, uid: int, gid: int, follow: bool) -> None:
        self.view.chown(path, uid, gid, follow=follow)

    def do_truncate(self, path: str, size: int) -> None:
        self.view.truncate(path, size)

    def do_mark(self, path: str, follow: bool) -> None:
        self.view.utimens(path, MARK, MARK, follow=follow)

    def do_touch(self, path: str) -> None:
        self.view.utimens(path, None, None, now=True)

    def do_chdir(self, path: str) -> None:
        self.view.chdir(path)

    def do_getcwd(self) -> str:
        return self.view.getcwd()

    def do_access(self, path: str, mode: int) -> None:
        self.view.access(path, mode)


def describe(found: Stat) -> Answer:
    special = found.kind == S_IFIFO  # whose times our pipes do not keep
    size = None if found.is_dir else found.size
    return [found.mode, found.nlink, found.uid, found.gid, size, found.mtime == MARK and not special]
