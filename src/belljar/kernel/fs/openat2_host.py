"""openat2(2) and renameat2(2): the two calls a host mount needs and Python's `os` does not have."""

import ctypes
import os
from errno import EAGAIN, EINTR, ENOSYS
from typing import Final

NO_XDEV: Final = 0x01
NO_MAGICLINKS: Final = 0x02
NO_SYMLINKS: Final = 0x04
BENEATH: Final = 0x08
IN_ROOT: Final = 0x10

_OPENAT2: Final = 437  # the same on every architecture
_RETRIES: Final = 100

_libc = ctypes.CDLL(None, use_errno=True)


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_HOW_SIZE: Final = ctypes.sizeof(_OpenHow)


def openat2(directory: int, path: bytes, flags: int, resolve: int) -> int:
    """A descriptor for `path` as seen from `directory`, found under the rules in `resolve`. OSError."""
    how = _OpenHow(flags | os.O_CLOEXEC, 0, resolve)
    for _ in range(_RETRIES):
        fd: int = _libc.syscall(_OPENAT2, directory, path, ctypes.byref(how), _HOW_SIZE)
        if fd >= 0:
            return fd
        code = ctypes.get_errno()
        if code not in (EAGAIN, EINTR):  # EAGAIN: a rename elsewhere made the kernel unsure; ask again
            break
    raise OSError(code, os.strerror(code))


def renameat2(source: int, old: bytes, target: int, new: bytes, flags: int) -> None:
    """OSError."""
    if not flags:
        os.rename(old, new, src_dir_fd=source, dst_dir_fd=target)
        return
    try:
        call = _libc.renameat2
    except AttributeError:
        raise OSError(ENOSYS, os.strerror(ENOSYS)) from None
    if call(source, old, target, new, flags):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
