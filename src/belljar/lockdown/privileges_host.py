"""Gives up root and every capability, as far as this machine lets us; and says what is left."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from ctypes import get_errno
from os import strerror
from struct import pack
from typing import Final

NOBODY: Final = 65534
_CAPABILITY_VERSION: Final = pack("<Ii", 0x20080522, 0)
"""struct __user_cap_header_struct: _LINUX_CAPABILITY_VERSION_3, this process."""
_CAPABILITY_BYTES: Final = 24
"""Effective, permitted and inheritable, of two words each."""
_PR_CAPBSET_DROP, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 24, 47, 4
_CAPABILITIES_MAX: Final = 64

_libc = ctypes.CDLL(None, use_errno=True)


class PrivilegesKept(RuntimeError):
    """Capabilities could not be given up."""


def drop_root() -> bool:
    """Become nobody if this process is root. False if that is not permitted: it is root still.

    Needs CAP_SETUID and CAP_SETGID, and that nobody is mapped in this user namespace; a container may have neither.
    """
    if os.geteuid() != 0:
        return True
    with suppress(OSError):
        os.setgroups([])
    with suppress(OSError):
        os.setresgid(NOBODY, NOBODY, NOBODY)
    with suppress(OSError):
        os.setresuid(NOBODY, NOBODY, NOBODY)
    return os.geteuid() != 0


def root_is_mapped() -> bool:
    """Whether uid 0 here is uid 0 outside this user namespace too, as far as can be seen; true if it can't be told."""
    try:
        with open("/proc/self/uid_map") as file:
            ranges = [tuple(map(int, line.split())) for line in file]
    except (OSError, ValueError):
        return True
    return any(inside == 0 and outside == 0 for inside, outside, _count in ranges)


def drop_capabilities() -> None:
    """Clear every capability set of this process, for good. Raises PrivilegesKept if one is left."""
    for number in range(_CAPABILITIES_MAX):  # needs CAP_SETPCAP; without it no_new_privs has the same effect
        if _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0) != 0:
            break
    clear_capabilities()


def clear_capabilities() -> None:
    """The same without the bounding set, for a process that can't start a program any more."""
    _libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    if _libc.capset(_CAPABILITY_VERSION, bytes(_CAPABILITY_BYTES)) != 0:
        raise PrivilegesKept(f"capset: {strerror(get_errno())}")
    left = ctypes.create_string_buffer(_CAPABILITY_BYTES)
    if _libc.capget(_CAPABILITY_VERSION, left) != 0:
        raise PrivilegesKept(f"capget: {strerror(get_errno())}")
    if any(left.raw):
        raise PrivilegesKept(f"capabilities are left: {left.raw.hex()}")
