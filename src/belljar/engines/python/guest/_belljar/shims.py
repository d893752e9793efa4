"""What WASI's C library lacks of a Unix: modes, owners, pipes, processes, terminals. Each is a call on the kernel."""

import os
import posix
import sys
import types
from stat import S_IFDIR, S_IFLNK, S_IFREG

from _belljar import door
from _belljar.protocol import AT_FDCWD, ATIME_NOW, ATIME_SET, DEFAULT, IGNORED, MTIME_NOW, MTIME_SET, REPORTED

WNOHANG, WUNTRACED, WCONTINUED = 1, 2, 8
S_IFMT = 0o170000
identity = {}
"""pid, ppid, uid, gid: of the program that runs."""


def _path(path):
    """A path as the kernel takes it, from the current directory."""
    data = os.fsencode(path)
    if not data.startswith(b"/"):
        data = posix.getcwdb().rstrip(b"/") + b"/" + data
    return data


def _at(path, dir_fd):
    return (AT_FDCWD, _path(path)) if dir_fd is None else (dir_fd, os.fsencode(path))


def _stat_result(values):
    mode, ino, dev, nlink, uid, gid, size, atime, mtime, ctime, rdev, blocks = values
    return os.stat_result(
        (mode, ino, dev, nlink, uid, gid, size, atime // 10**9, mtime // 10**9, ctime // 10**9),
        {
            "st_atime": atime / 1e9, "st_mtime": mtime / 1e9, "st_ctime": ctime / 1e9,
            "st_atime_ns": atime, "st_mtime_ns": mtime, "st_ctime_ns": ctime,
            "st_blksize": 4096, "st_blocks": blocks, "st_rdev": rdev,
        },
    )  # fmt: skip


def stat(path, *, dir_fd=None, follow_symlinks=True):
    if isinstance(path, int):
        return fstat(path)
    if path.__class__ is str and path.startswith(_LIBRARY):
        return posix.stat(path)
    return _stat_result(door.call("stat", *_at(path, dir_fd), int(not follow_symlinks), names=(path,))[0])


_LIBRARY = "/usr/local/lib/python315.zip"


class DirEntry:
    """An entry of a directory, as os.scandir gives them."""

    __slots__ = ("_inode", "_kind", "_lstat", "_stat", "name", "path")

    def __init__(self, name, path, inode, kind):
        self.name, self.path, self._inode, self._kind = name, path, inode, kind
        self._stat = self._lstat = None

    def __fspath__(self):
        return self.path

    def __repr__(self):
        return f"<DirEntry {self.name!r}>"

    def inode(self):
        return self._inode

    def is_symlink(self):
        return self._kind == S_IFLNK

    def is_junction(self):
        return False

    def is_dir(self, *, follow_symlinks=True):
        return self._is(S_IFDIR, follow_symlinks)

    def is_file(self, *, follow_symlinks=True):
        return self._is(S_IFREG, follow_symlinks)

    def _is(self, kind, follow):
        if self._kind != S_IFLNK or not follow:
            return self._kind == kind
        try:
            return self.stat().st_mode & S_IFMT == kind
        except FileNotFoundError:
            return False

    def stat(self, *, follow_symlinks=True):
        if self._kind == S_IFLNK and follow_symlinks:
            if self._stat is None:
                self._stat = stat(self.path)
            return self._stat
        if self._lstat is None:
            self._lstat = stat(self.path, follow_symlinks=False)
        return self._lstat

    __class_getitem__ = classmethod(types.GenericAlias)


class ScandirIterator:
    """The entries of a directory, all known from the start."""

    def __init__(self, entries):
        self._entries = entries

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._entries)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._entries = iter(())


def scandir(path="."):
    if path is None:
        path = "."
    if isinstance(path, int):
        (found,) = door.call("readdir", path, b"")
        prefix, text = "", True
    else:
        given = os.fspath(path)
        text = isinstance(given, str)
        if text and given.startswith(_LIBRARY):
            return posix.scandir(path)
        (found,) = door.call("readdir", AT_FDCWD, _path(given), names=(path,))
        separator = "/" if text else b"/"
        prefix = given if given.endswith(separator) else given + separator
    return ScandirIterator(iter([_entry(prefix, text, *entry) for entry in found]))


def _entry(prefix, text, inode, kind, name):
    word = os.fsdecode(name) if text else name
    return DirEntry(word, prefix + word, inode, kind)


def listdir(path="."):
    if path is not None and not isinstance(path, int) and os.fsdecode(path).startswith(_LIBRARY):
        return posix.listdir(path)
    with scandir(path) as entries:
        return [entry.name for entry in entries]


def lstat(path, *, dir_fd=None):
    return stat(path, dir_fd=dir_fd, follow_symlinks=False)


def fstat(fd):
    if fd >= 1 << 20:
        return posix.fstat(fd)
    return _stat_result(door.call("fstat", fd)[0])


def access(path, mode, *, dir_fd=None, effective_ids=False, follow_symlinks=True):
    try:
        door.call("access", *_at(path, dir_fd), mode)
    except OSError:
        return str(os.fspath(path)).startswith(_LIBRARY) and posix.access(path, mode)
    return True


def chmod(path, mode, *, dir_fd=None, follow_symlinks=True):
    if isinstance(path, int):
        return fchmod(path, mode)
    door.call("chmod", *_at(path, dir_fd), mode, int(not follow_symlinks), names=(path,))


def fchmod(fd, mode):
    door.call("fchmod", fd, mode)


def lchmod(path, mode):
    chmod(path, mode, follow_symlinks=False)


def chown(path, uid, gid, *, dir_fd=None, follow_symlinks=True):
    if isinstance(path, int):
        return fchown(path, uid, gid)
    door.call("chown", *_at(path, dir_fd), uid, gid, int(not follow_symlinks), names=(path,))


def fchown(fd, uid, gid):
    door.call("fchown", fd, uid, gid)


def lchown(path, uid, gid):
    chown(path, uid, gid, follow_symlinks=False)


def utime(path, times=None, *, ns=None, dir_fd=None, follow_symlinks=True):
    if times is not None and ns is not None:
        raise ValueError("utime: you may specify either 'times' or 'ns' but not both")
    which = ATIME_NOW | MTIME_NOW
    atime = mtime = 0
    if times is not None:
        atime, mtime = (int(value * 1_000_000_000) if isinstance(value, float) else value * 10**9 for value in times)
        which = ATIME_SET | MTIME_SET
    elif ns is not None:
        atime, mtime = ns
        which = ATIME_SET | MTIME_SET
    if isinstance(path, int):
        door.call("futimens", path, atime, mtime, which)
    else:
        door.call("utimens", *_at(path, dir_fd), atime, mtime, which, int(not follow_symlinks), names=(path,))


def mkdir(path, mode=0o777, *, dir_fd=None):
    door.call("mkdir", *_at(path, dir_fd), mode, names=(path,))


def mkfifo(path, mode=0o666, *, dir_fd=None):
    door.call("mkfifo", *_at(path, dir_fd), mode, names=(path,))


def open_(path, flags, mode=0o777, *, dir_fd=None):
    fd = posix.open(path, flags, mode) if dir_fd is None else posix.open(path, flags, mode, dir_fd=dir_fd)
    if flags & os.O_CREAT and flags & os.O_EXCL and mode not in (0o666, 0o777):
        fchmod(fd, mode & ~identity.get("umask", 0o022))
    return fd


def umask(mask):
    (old,) = door.call("umask", mask)
    identity["umask"] = mask & 0o777
    return old


def pipe():
    return tuple(door.call("pipe", 1))


def pipe2(flags):
    return pipe()


def dup(fd):
    return door.call("dup", fd, 0, 1)[0]


def dup2(fd, fd2, inheritable=True):
    door.call("dup2", fd, fd2, int(not inheritable))
    return fd2


def get_inheritable(fd):
    return not door.call("getfl", fd)[1]


def set_inheritable(fd, inheritable):
    door.call("setcloexec", fd, int(not inheritable))


def statvfs(path):
    size, blocks, free, files, files_free, name_max = door.call("statfs", AT_FDCWD, _path(path), names=(path,))[0]
    return os.statvfs_result((size, size, blocks, free, free, files, files_free, files_free, 0, name_max))


def get_terminal_size(fd=1, /):
    rows, columns = door.call("winsize", fd)
    return os.terminal_size((columns, rows))


def chdir(path):
    """The C library only notes the path; the kernel knows what it is without `..` and links."""
    if isinstance(path, int):
        door.call("chdir", path, b".")
    else:
        door.call("chdir", AT_FDCWD, _path(path), names=(path,))
    posix.chdir(door.call("getcwd")[0])


def fchdir(fd):
    chdir(fd)


# Processes.


def getpid():
    return identity["pid"]


def getppid():
    return identity["ppid"]


def getuid():
    return identity["uid"]


def getgid():
    return identity["gid"]


def getgroups():
    return [identity["gid"]]


def getpgid(pid):
    return door.call("ids")[0][2]


def getpgrp():
    return door.call("ids")[0][2]


def getsid(pid):
    return door.call("ids")[0][3]


def getlogin():
    return os.environ.get("LOGNAME") or os.environ.get("USER") or "agent"


def kill(pid, signal):
    door.call("kill", pid, int(signal))


def killpg(pgid, signal):
    door.call("kill", -pgid, int(signal))


def waitpid(pid, options):
    found, code, signal = door.call("wait", pid, options)
    return found, (code << 8 | signal if found else 0)


def wait():
    return waitpid(-1, 0)


def waitstatus_to_exitcode(status):
    if status & 0x7F:
        return -(status & 0x7F)
    return status >> 8


def system(command):
    sys.stdout.flush()
    argv = [b"sh", b"-c", os.fsencode(command)]
    env = [key + b"=" + value for key, value in os.environb.items()]
    (pid,) = door.call("spawn", b"/bin/sh", argv, env, posix.getcwdb(), [], [], 0)
    return waitpid(pid, 0)[1]


def uname():
    (host,) = door.call("hostname")
    return os.uname_result(("Linux", os.fsdecode(host), "6.1.0-belljar", "#1 SMP belljar", "wasm32"))


def _wif(name):
    return {
        "WIFEXITED": lambda status: not status & 0x7F,
        "WEXITSTATUS": lambda status: status >> 8 & 0xFF,
        "WIFSIGNALED": lambda status: bool(status & 0x7F),
        "WTERMSIG": lambda status: status & 0x7F,
        "WIFSTOPPED": lambda status: False,
        "WSTOPSIG": lambda status: 0,
        "WIFCONTINUED": lambda status: False,
        "WCOREDUMP": lambda status: False,
    }[name]


def isatty(fd):
    try:
        return bool(door.call("isatty", fd)[0])
    except OSError:
        return False


def catch_signals():
    """Have signal.signal tell the kernel: it decides what becomes of a process that gets one."""
    import signal

    original = signal.signal

    def set_handler(number, handler):
        old = original(number, handler)
        how = {signal.SIG_DFL: DEFAULT, signal.SIG_IGN: IGNORED}.get(handler, REPORTED)
        door.call("catch", int(number), how)
        return old

    set_handler.__name__ = set_handler.__qualname__ = "signal"
    set_handler.__doc__ = original.__doc__
    signal.signal = set_handler


def _exec(path, argv, env=None):
    """There is no execve: the program runs as a child, and its end is ours."""
    sys.stdout.flush()
    sys.stderr.flush()
    variables = os.environb.items() if env is None else ((os.fsencode(k), os.fsencode(v)) for k, v in env.items())
    environment = [key + b"=" + value for key, value in variables]
    words = [os.fsencode(word) for word in argv]
    (pid,) = door.call("spawn", _path(path), words, environment, posix.getcwdb(), [], [], 0, names=(path,))
    _, code, signal = door.call("wait", pid, 0)
    door.leave(code, signal)


def execv(path, args):
    _exec(path, args)


def execve(path, args, env):
    _exec(path, args, env)


_NAMES = (
    "chdir fchdir stat lstat fstat scandir listdir access chmod fchmod lchmod chown fchown lchown utime mkdir "
    "mkfifo umask pipe pipe2 dup dup2 get_inheritable set_inheritable statvfs get_terminal_size getpid getppid "
    "getuid getgid getgroups getpgid getpgrp getsid getlogin kill killpg waitpid wait waitstatus_to_exitcode "
    "system uname execv execve isatty"
).split()


def install():
    for name in _NAMES:
        function = globals()[name]
        function.__module__ = "posix"
        function.__doc__ = getattr(getattr(posix, name, None), "__doc__", None)
        setattr(os, name, function)
    os.open = open_
    DirEntry.__module__ = "posix"
    os.DirEntry = DirEntry
    os.geteuid, os.getegid = getuid, getgid
    for name in "WIFEXITED WEXITSTATUS WIFSIGNALED WTERMSIG WIFSTOPPED WSTOPSIG WIFCONTINUED WCOREDUMP".split():
        setattr(os, name, _wif(name))
    os.WNOHANG, os.WUNTRACED, os.WCONTINUED = WNOHANG, WUNTRACED, WCONTINUED
    os.P_WAIT, os.P_NOWAIT = 0, 1
    os.supports_dir_fd.update({stat, chmod, chown, mkdir, mkfifo, utime, access})
    os.supports_follow_symlinks.update({stat, chmod, chown, utime})
    os.supports_fd.update({stat, chmod, chown, utime, scandir, listdir})
    _complete_shutil()
    catch_signals()
    _load_subprocess()


def _complete_shutil():
    """What shutil left out because it found no statvfs when it was loaded."""
    import collections
    import shutil

    usage = collections.namedtuple("usage", "total used free")
    usage.__module__ = "shutil"

    def disk_usage(path):
        found = os.statvfs(path)
        total, free = found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize
        return usage(total, (found.f_blocks - found.f_bfree) * found.f_frsize, free)

    shutil.disk_usage = disk_usage
    shutil._USE_CP_SENDFILE = False


def _load_subprocess():
    """The standard module, which asks once, when it is loaded, whether the platform has processes."""
    old = sys.modules.pop("subprocess", None)
    platform, sys.platform = sys.platform, "linux"
    try:
        import subprocess
    finally:
        sys.platform = platform
    subprocess._USE_POSIX_SPAWN = subprocess._USE_VFORK = False
    for module in list(sys.modules.values()):
        if old is not None and getattr(module, "subprocess", None) is old:
            module.subprocess = subprocess
