"""The state of sockets by descriptor number, so that it outlives `detach` and `socket(fileno=...)`."""

import os

from _belljar import hostcalls
from _belljar.protocol import AT_FDCWD

O_RDWR, O_CLOEXEC = 0o2, 0o2000000
states = {}
"""States by descriptor."""


class State:
    """State shared by socket objects of one descriptor and its duplicates."""

    def __init__(self, family, type, proto):
        self.family, self.type, self.proto = family, type, proto
        self.fds = set()
        self.dialled = None
        self.server = None
        """The port that it has bound."""
        self.others = {}
        """Connections of a datagram socket that has sent to several places."""
        self.bound = None
        self.connecting = self.deaf = self.listening = False
        self.ahead = b""
        self.options = {}


def opened(state):
    """A descriptor for a socket that is not connected yet: its connection's takes its place."""
    fd = hostcalls.call("open", AT_FDCWD, b"/dev/null", O_RDWR | O_CLOEXEC, 0)[0]
    state.fds.add(fd)
    states[fd] = state
    return fd


def close(fd, /):
    state = states.pop(fd, None)
    if state is not None:
        state.fds.discard(fd)
        if not state.fds:
            for dialled in (state.dialled, state.server, *state.others.values()):
                if dialled is not None:
                    dialled.close()
    os.close(fd)


def dup(fd, /):
    new = os.dup(fd)
    if fd in states:
        states[new] = states[fd]
        states[new].fds.add(new)
    return new
