"""Descriptors for `os`: pipes, copies, terminals, and what there is how many of."""

import operator
import os

from _belljar import hostcalls
from _belljar.native import native
from _belljar.protocol import AT_FDCWD

O_CLOEXEC = 0o2000000
_LINUX_RDWR, _LINUX_NOCTTY = 2, 0o400
OPEN_MAX = 1024


def pipe():
    return tuple(hostcalls.call("pipe", 1))


def pipe2(flags, /):
    ends = tuple(hostcalls.call("pipe", int(bool(operator.index(flags) & O_CLOEXEC))))
    if flags & os.O_NONBLOCK:
        for fd in ends:
            os.set_blocking(fd, False)
    return ends


def dup(fd):
    return hostcalls.call("dup", fd, 0, 1)[0]


def dup2(fd, fd2, inheritable=True):
    hostcalls.call("dup2", fd, fd2, int(not inheritable))
    return fd2


def get_inheritable(fd):
    return not hostcalls.call("getfl", fd)[1]


def set_inheritable(fd, inheritable):
    hostcalls.call("setcloexec", fd, int(not inheritable))


def get_terminal_size(fd=1, /):
    rows, columns = hostcalls.call("winsize", fd)
    return os.terminal_size((columns, rows))


def isatty(fd):
    try:
        return bool(hostcalls.call("isatty", fd)[0])
    except OSError:
        return False


def ttyname(fd, /):
    return os.fsdecode(hostcalls.call("ttyname", fd)[0])


def ptsname(fd, /):
    return os.fsdecode(hostcalls.call("ptsname", fd)[0])


def openpty():
    master, _ = hostcalls.call("open", AT_FDCWD, b"/dev/ptmx", _LINUX_RDWR | O_CLOEXEC, 0)
    name = os.fsencode(ptsname(master))
    return master, hostcalls.call("open", AT_FDCWD, name, _LINUX_RDWR | _LINUX_NOCTTY | O_CLOEXEC, 0)[0]


def tcgetpgrp(fd, /):
    return hostcalls.call("tcgetpgrp", fd)[0]


def tcsetpgrp(fd, pgid, /):
    hostcalls.call("tcsetpgrp", fd, pgid)


def ctermid():
    return "/dev/tty"


def cpu_count():
    """Return the number of processors, as `nproc` does."""
    with open("/proc/cpuinfo") as file:
        return sum(line.startswith("processor") for line in file) or 1


def sched_getaffinity(pid, /):
    return set(range(cpu_count()))


def sysconf(name, /):
    """os.sysconf: the C library's answer, corrected for the sandbox."""
    if name in ("SC_OPEN_MAX", os.sysconf_names["SC_OPEN_MAX"]):
        return OPEN_MAX
    if name in ("SC_PHYS_PAGES", os.sysconf_names["SC_PHYS_PAGES"]):
        with open("/proc/meminfo") as file:
            return int(file.readline().split()[1]) * 1024 // native.sysconf("SC_PAGE_SIZE")
    return native.sysconf(name)
