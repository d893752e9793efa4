"""Files for `os`, with what WASI's C library lacks of them: modes, owners, times, FIFOs, the kernel's paths."""

import operator
import os
import warnings
from math import floor

from _belljar import hostcalls
from _belljar.native import native
from _belljar.protocol import AT_FDCWD, ATIME_NOW, ATIME_SET, MTIME_NOW, MTIME_SET

LIBRARY = "/usr/local/lib/python315.zip"
"""Directory of the interpreter's own files: none of the sandbox's."""
PACKAGES = "/usr/local/lib/python315-packages.zip"
"""Further packages that come with it, last on the path."""
OWN = (LIBRARY, PACKAGES)
identity = {}
"""pid, ppid, uid, gid and umask of the program that runs."""


def encoded(path):
    """A path as bytes. TypeError, ValueError."""
    data = os.fsencode(path)
    if 0 in data:
        raise ValueError("embedded null byte")
    return data


def absolute(path):
    """A path as the kernel takes it, from the current directory."""
    data = encoded(path)
    if not data.startswith(b"/"):
        data = native.getcwdb().rstrip(b"/") + b"/" + data
    return data


def _at(path, dir_fd):
    if dir_fd is None:
        return AT_FDCWD, absolute(path)
    if not isinstance(dir_fd, int):
        raise TypeError(f"argument should be integer or None, not {type(dir_fd).__name__}")
    if dir_fd.__class__ is bool:
        warnings.warn("bool is used as a file descriptor", RuntimeWarning, stacklevel=3)
    if not -(1 << 31) <= dir_fd < 1 << 31:
        raise OverflowError("fd is greater than maximum" if dir_fd > 0 else "fd is less than minimum")
    return dir_fd, encoded(path)


def is_fd(path):
    """Whether what should be a path is a descriptor."""
    if path.__class__ is str or not isinstance(path, int):
        return False
    if path.__class__ is bool:
        warnings.warn("bool is used as a file descriptor", RuntimeWarning, stacklevel=3)
    return True


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
    if is_fd(path):
        if dir_fd is not None or not follow_symlinks:
            raise ValueError(f"stat: cannot use fd and {'follow_symlinks' if dir_fd is None else 'dir_fd'} together")
        return fstat(path)
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError(f"stat: path should be string, bytes, os.PathLike or integer, not {type(path).__name__}")
    given = os.fspath(path)
    if given.__class__ is str and given.startswith(OWN):
        return native.stat(given)
    return _stat_result(hostcalls.call("stat", *_at(path, dir_fd), int(not follow_symlinks), names=(path,))[0])


def lstat(path, *, dir_fd=None):
    if isinstance(path, int):
        raise TypeError("lstat: path should be string, bytes or os.PathLike, not int")
    return stat(path, dir_fd=dir_fd, follow_symlinks=False)


def fstat(fd):
    if fd >= 1 << 20:
        return native.fstat(fd)
    return _stat_result(hostcalls.call("fstat", fd)[0])


def access(path, mode, *, dir_fd=None, effective_ids=False, follow_symlinks=True):
    try:
        hostcalls.call("access", *_at(path, dir_fd), mode)
    except OSError:
        return str(os.fspath(path)).startswith(OWN) and native.access(path, mode)
    return True


def chmod(path, mode, *, dir_fd=None, follow_symlinks=True):
    if is_fd(path):
        return fchmod(path, mode)
    hostcalls.call("chmod", *_at(path, dir_fd), mode, int(not follow_symlinks), names=(path,))


def fchmod(fd, mode):
    hostcalls.call("fchmod", fd, mode)


def lchmod(path, mode):
    chmod(path, mode, follow_symlinks=False)


def chown(path, uid, gid, *, dir_fd=None, follow_symlinks=True):
    if is_fd(path):
        return fchown(path, uid, gid)
    uid, gid = operator.index(uid), operator.index(gid)
    hostcalls.call("chown", *_at(path, dir_fd), uid, gid, int(not follow_symlinks), names=(path,))


def fchown(fd, uid, gid):
    hostcalls.call("fchown", fd, operator.index(uid), operator.index(gid))


def lchown(path, uid, gid):
    chown(path, uid, gid, follow_symlinks=False)


def utime(path, times=None, *, ns=None, dir_fd=None, follow_symlinks=True):
    if times is not None and ns is not None:
        raise ValueError("utime: you may specify either 'times' or 'ns' but not both")
    which = ATIME_NOW | MTIME_NOW
    atime = mtime = 0
    if times is not None:
        atime, mtime = map(_clamp, map(_nanoseconds, _pair("times", times)))
        which = ATIME_SET | MTIME_SET
    elif ns is not None:
        atime, mtime = map(_clamp, map(operator.index, _pair("ns", ns)))
        which = ATIME_SET | MTIME_SET
    if is_fd(path):
        hostcalls.call("futimens", path, atime, mtime, which)
    else:
        hostcalls.call("utimens", *_at(path, dir_fd), atime, mtime, which, int(not follow_symlinks), names=(path,))


def _pair(name, given):
    if not isinstance(given, tuple) or len(given) != 2:
        raise TypeError(f"utime: {name!r} must be either a tuple of two ints or None")
    return given


def _clamp(ns):
    """The nearest time that a file can have."""
    if not -(2**63) <= ns // 10**9 < 2**63:
        raise OverflowError("Python int too large to convert to C long")
    return max(min(ns, 2**63 - 1), 1 - 2**63)


def _nanoseconds(seconds):
    if isinstance(seconds, int):
        return seconds * 10**9
    if isinstance(seconds, (str, bytes)):
        raise TypeError(f"an integer is required (got type {type(seconds).__name__})")
    return floor(seconds * 10**9)


def mkdir(path, mode=0o777, *, dir_fd=None):
    hostcalls.call("mkdir", *_at(path, dir_fd), mode, names=(path,))


def mkfifo(path, mode=0o666, *, dir_fd=None):
    hostcalls.call("mkfifo", *_at(path, dir_fd), mode, names=(path,))


def open_(path, flags, mode=0o777, *, dir_fd=None):
    fd = native.open(path, flags, mode) if dir_fd is None else native.open(path, flags, mode, dir_fd=dir_fd)
    if flags & os.O_CREAT and flags & os.O_EXCL and mode not in (0o666, 0o777):
        fchmod(fd, mode & ~identity.get("umask", 0o022))
    return fd


def umask(mask):
    (old,) = hostcalls.call("umask", mask)
    identity["umask"] = mask & 0o777
    return old


def statvfs(path):
    place = (path, b".") if is_fd(path) else (AT_FDCWD, absolute(path))
    size, blocks, free, files, files_free, name_max = hostcalls.call("statfs", *place, names=(path,))[0]
    return os.statvfs_result(
        (size, size, blocks, free, free, files, files_free, files_free, 0, name_max), {"f_fsid": 0}
    )


def chdir(path):
    """The C library only notes the path; the kernel knows what it is without `..` and links."""
    if is_fd(path):
        hostcalls.call("chdir", path, b".")
    else:
        hostcalls.call("chdir", AT_FDCWD, absolute(path), names=(path,))
    native.chdir(hostcalls.call("getcwd")[0])


def fchdir(fd):
    chdir(fd)
