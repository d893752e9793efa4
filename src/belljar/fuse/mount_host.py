"""Mounting FUSE on this machine, and unmounting: by mount(2) where that is allowed, else by fusermount3."""

from __future__ import annotations

import array
import ctypes
import errno
import os
import shutil
import socket
import subprocess
from typing import Final

from belljar.abi.errors import SandboxError

DEVICE: Final = "/dev/fuse"
HELPER: Final = "fusermount3"
TYPE: Final = "fuse.belljar"
_MS_RDONLY: Final = 1
_MS_NOSUID: Final = 2
_MS_NODEV: Final = 4
_MNT_DETACH: Final = 2
_UMOUNT_NOFOLLOW: Final = 8
_SECONDS: Final = 10.0


class MountError(SandboxError):
    """A directory could not be mounted or unmounted."""


def missing() -> str:
    """Advice, if this user can't mount; else empty."""
    if not os.path.exists(DEVICE):
        return f"there is no {DEVICE}: load the kernel module (modprobe fuse), or give it to this container (--device)"
    if os.geteuid() != 0 and shutil.which(HELPER) is None:
        return f"{HELPER} is not installed: install the package fuse3, or run as root"
    return ""


def mount_device(fd: int, directory: str, source: str, *, read_only: bool, options: str = "") -> None:
    """Mount an open /dev/fuse by mount(2). OSError."""
    given = f"fd={fd},rootmode=40000,user_id={os.geteuid()},group_id={os.getegid()}{options}"
    flags = _MS_NOSUID | _MS_NODEV | (_MS_RDONLY if read_only else 0)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(source.encode(), os.fsencode(directory), TYPE.encode(), ctypes.c_ulong(flags), given.encode()):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), directory)


def mount(directory: str, source: str, *, read_only: bool) -> int:
    """Mount at a directory, for this user alone; gives the device to be served. MountError."""
    if not os.path.isdir(directory):
        raise MountError(f"can't mount at {directory}: it is no directory")
    if why := missing():
        raise MountError(f"can't mount at {directory}: {why}")
    if os.geteuid() != 0:
        return _mount_by_helper(directory, source, read_only=read_only)
    fd = -1
    try:
        fd = os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC)
        mount_device(fd, directory, source, read_only=read_only)
    except OSError as error:
        if fd >= 0:
            os.close(fd)
        hint = ": it takes CAP_SYS_ADMIN, which containers do not have by default" if error.errno == errno.EPERM else ""
        raise MountError(f"can't mount at {directory}: {error.strerror}{hint}") from error
    return fd


def _mount_by_helper(directory: str, source: str, *, read_only: bool) -> int:
    """fusermount3 opens the device, mounts it, and passes it on over a socket."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        options = f"fsname={source.replace(',', '_')},subtype=belljar,nosuid,nodev,{'ro' if read_only else 'rw'}"
        try:
            done = subprocess.run(  # noqa: S603 - a fixed program
                [HELPER, "-o", options, "--", directory],
                env={**os.environ, "_FUSE_COMMFD": str(theirs.fileno())},
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                timeout=_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise MountError(f"can't mount at {directory}: {HELPER}: {error}") from error
        theirs.close()
        if done.returncode:
            raise MountError(f"can't mount at {directory}: {done.stderr.decode(errors='replace').strip()}")
        ours.settimeout(_SECONDS)
        fds = array.array("i")
        for level, kind, data in ours.recvmsg(1, socket.CMSG_SPACE(fds.itemsize))[1]:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds.frombytes(data[: fds.itemsize])
    if not fds:
        raise MountError(f"can't mount at {directory}: {HELPER} gave no device")
    os.set_inheritable(fds[0], False)
    return fds[0]


def unmount(directory: str) -> None:
    """Unmount one of ours, even if it is in use or nobody serves it any more. MountError."""
    path = os.path.join(os.path.realpath(os.path.dirname(directory) or "."), os.path.basename(directory))
    path = os.path.normpath(path)
    if path not in mounted():
        raise MountError(f"can't unmount {directory}: it is no mount of belljar")
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.umount2(os.fsencode(path), _MNT_DETACH | _UMOUNT_NOFOLLOW):
            raise MountError(f"can't unmount {directory}: {os.strerror(ctypes.get_errno())}")
        return
    try:
        command = [HELPER, "-u", "-z", "--", path]
        subprocess.run(command, check=True, capture_output=True, timeout=_SECONDS)  # noqa: S603
    except subprocess.CalledProcessError as error:
        raise MountError(f"can't unmount {directory}: {error.stderr.decode(errors='replace').strip()}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MountError(f"can't unmount {directory}: {HELPER}: {error}") from error


def mounted() -> list[str]:
    """The directories at which something of ours is mounted."""
    found: list[str] = []
    with open("/proc/self/mountinfo", "rb") as lines:
        for line in lines:
            fields, _, rest = line.partition(b" - ")
            if rest.split(b" ", 1)[0] == TYPE.encode():
                found.append(os.fsdecode(fields.split(b" ")[4].decode("unicode_escape").encode("latin-1")))
    return found
