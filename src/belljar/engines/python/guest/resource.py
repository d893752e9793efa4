"""Resource limits and use, as far as the sandbox's kernel knows them."""

import os
from collections import namedtuple

from _belljar import hostcalls

error = OSError
RLIM_INFINITY = -1
RUSAGE_SELF, RUSAGE_CHILDREN, RUSAGE_THREAD = 0, -1, 1
(
    RLIMIT_CPU, RLIMIT_FSIZE, RLIMIT_DATA, RLIMIT_STACK, RLIMIT_CORE, RLIMIT_RSS, RLIMIT_NPROC, RLIMIT_NOFILE,
    RLIMIT_MEMLOCK, RLIMIT_AS, RLIMIT_LOCKS, RLIMIT_SIGPENDING, RLIMIT_MSGQUEUE, RLIMIT_NICE, RLIMIT_RTPRIO,
    RLIMIT_RTTIME,
) = range(16)  # fmt: skip
RLIMIT_OFILE = RLIMIT_NOFILE
struct_rusage = namedtuple(
    "struct_rusage",
    "ru_utime ru_stime ru_maxrss ru_ixrss ru_idrss ru_isrss ru_minflt ru_majflt ru_nswap ru_inblock ru_oublock "
    "ru_msgsnd ru_msgrcv ru_nsignals ru_nvcsw ru_nivcsw",
)


def _check(resource):
    if not 0 <= resource < 16:
        raise ValueError("invalid resource specified")


def getrlimit(resource, /):
    _check(resource)
    return tuple(hostcalls.call("getrlimit", resource))


def setrlimit(resource, limits, /):
    _check(resource)
    try:
        soft, hard = limits
    except (TypeError, ValueError):
        raise ValueError("expected a tuple of 2 integers") from None
    _set(resource, soft, hard)


def _set(resource, soft, hard):
    try:
        hostcalls.call("setrlimit", resource, *(-1 if value < 0 else value for value in (soft, hard)))
    except PermissionError:
        raise ValueError("not allowed to raise maximum limit") from None
    except OSError as problem:
        if hostcalls.TO_LINUX.get(problem.errno) == 22:
            raise ValueError("current limit exceeds maximum limit") from None
        raise


def prlimit(pid, resource, limits=None, /):
    _check(resource)
    if pid not in (0, os.getpid()):
        raise PermissionError(hostcalls.FROM_LINUX[1], "Operation not permitted")
    before = getrlimit(resource)
    if limits is not None:
        setrlimit(resource, limits)
    return before


def getrusage(who, /):
    """Processor time of this program; what its children used is not told."""
    if who not in (RUSAGE_SELF, RUSAGE_CHILDREN, RUSAGE_THREAD):
        raise ValueError("invalid who parameter")
    used = 0.0 if who == RUSAGE_CHILDREN else hostcalls.processor_ns() / 1e9
    return struct_rusage(used, 0.0, *[0] * 14)


def getpagesize():
    return os.sysconf("SC_PAGE_SIZE")
