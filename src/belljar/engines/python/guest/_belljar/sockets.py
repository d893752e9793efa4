"""The class `_socket.socket` of a sandbox: connections over /net, and servers for the programs of the sandbox.

A socket's descriptor is its connection's data file, so `select` and event loops see when it is ready.
"""

import errno
import os
import sys
import time

from _belljar import dialling, hostcalls, names, numbers
from _belljar.dialling import POLLIN, POLLOUT, READ_MAX, explained
from _belljar.names import ANY
from _belljar.numbers import (
    AF_INET,
    AF_INET6,
    MSG_DONTWAIT,
    MSG_PEEK,
    MSG_WAITALL,
    SHUT_RD,
    SHUT_WR,
    SO_ACCEPTCONN,
    SO_DOMAIN,
    SO_ERROR,
    SO_PROTOCOL,
    SO_TYPE,
    SOCK_CLOEXEC,
    SOCK_DGRAM,
    SOCK_NONBLOCK,
    SOCK_STREAM,
    SOL_SOCKET,
)
from _belljar.socket_state import State, close, opened, states

NO_DATAGRAM_SERVERS = "a sandbox has TCP servers only"
PREFACE = b"\x16\x03belljar-tls "
"""Prefix of a TLS hello that goes through an ssl.MemoryBIO; the server name follows on the line."""
LOOPBACK = {"": "127.0.0.1", **{ANY[family]: address for family, address in names.LOOPBACK.items()}}
"""Destination of a connection to the unspecified address."""
default_timeout = [None]
"""Timeout of new sockets; in a list, to be set by a function."""


def _host(address, what):
    if not isinstance(address, tuple) or len(address) < 2:
        raise TypeError(f"{what}(): AF_INET address must be tuple, not {type(address).__name__}")
    host, port = address[:2]
    if not isinstance(port, int):
        raise TypeError(f"'{type(port).__name__}' object cannot be interpreted as an integer")
    if not 0 <= port <= 65535:
        raise OverflowError(f"{what}(): port must be 0-65535.")
    text = names.text_of(host)
    return LOOPBACK.get(text, text), port


class socket:
    """socket(family=AF_INET, type=SOCK_STREAM, proto=0) -> socket object

    An end of a connection: inside the sandbox, or out of it as far as its owner grants one.
    """

    __slots__ = ("_fd", "_state", "_timeout")

    def __init__(self, family=-1, type=-1, proto=-1, fileno=None):
        self._fd = -1
        self._timeout = default_timeout[0]
        if fileno is not None:
            state = states.get(fileno)
            if state is None:
                raise explained(errno.ENOTSOCK, "")
            self._fd, self._state = fileno, state
            return
        family, type, proto = AF_INET if family == -1 else family, SOCK_STREAM if type == -1 else type, max(proto, 0)
        if type & SOCK_NONBLOCK:
            self._timeout = 0.0
        type &= ~(SOCK_NONBLOCK | SOCK_CLOEXEC)
        if family not in (AF_INET, AF_INET6):
            raise explained(errno.EAFNOSUPPORT, "a sandbox has internet sockets only")
        if type not in (SOCK_STREAM, SOCK_DGRAM):
            raise explained(errno.EPERM, "a sandbox has TCP and UDP only")
        self._state = State(family, type, proto)
        self._fd = opened(self._state)

    @property
    def family(self):
        return self._state.family

    @property
    def type(self):
        return self._state.type

    @property
    def proto(self):
        return self._state.proto

    @property
    def timeout(self):
        return self._timeout

    def __repr__(self):
        return f"<socket object, fd={self._fd}, family={self.family}, type={self.type}, proto={self.proto}>"

    def __del__(self):
        if getattr(self, "_fd", -1) >= 0:
            try:
                import warnings

                warnings.warn(f"unclosed {self!r}", ResourceWarning, stacklevel=2, source=self)
                self.close()
            except Exception:
                pass

    def fileno(self):
        return self._fd

    def detach(self):
        fd, self._fd = self._fd, -1
        return fd

    def close(self):
        fd = self.detach()
        if fd >= 0:
            close(fd)

    # How long to wait.

    def settimeout(self, value):
        if value is not None:
            value = float(value)
            if value < 0:
                raise ValueError("Timeout value out of range")
        self._timeout = value

    def gettimeout(self):
        return self._timeout

    def setblocking(self, flag):
        self._timeout = None if flag else 0.0

    def getblocking(self):
        return self._timeout != 0

    def _wait(self, events, flags=0, deadline=None):
        """Wait until the descriptor is ready, at most the socket's timeout. BlockingIOError, TimeoutError."""
        if self._timeout is None and not flags & MSG_DONTWAIT:
            return  # the call itself waits
        left = 0 if flags & MSG_DONTWAIT else self._timeout if deadline is None else max(0, deadline - time.monotonic())
        if not dialling.wait(self._fd, events, left):
            if self._timeout == 0 or flags & MSG_DONTWAIT:
                raise explained(errno.EAGAIN, "")
            raise TimeoutError("timed out")

    # Connecting.

    def connect(self, address, /):
        self._check()
        state = self._state
        host, port = _host(address, "connect")
        if state.dialled is not None and state.type == SOCK_STREAM:
            if state.connecting:
                raise explained(errno.EALREADY, "")
            raise explained(errno.EISCONN, "")
        if names.family_of(host) is None:
            names.resolve(host, state.family)  # gaierror
        if port == 0:
            raise explained(errno.ECONNREFUSED, "")
        dialled = dialling.Dialled("tcp" if state.type == SOCK_STREAM else "udp")
        try:
            dialled.connect(host, port, self._timeout if state.type == SOCK_STREAM else None)
        except OSError as problem:
            dialled.close()
            if problem.errno == errno.ETIMEDOUT and self._timeout is not None:
                raise TimeoutError("timed out") from None
            raise
        self._adopt(dialled)
        if self._timeout == 0 and state.type == SOCK_STREAM and not self._is_connected(dialled):
            state.connecting = True
            raise explained(errno.EINPROGRESS, "")

    def _is_connected(self, dialled):
        """Whether a non-blocking connect has finished. Raises its error."""
        if not dialling.wait(self._fd, POLLOUT, 0):
            return False
        if dialled.reason()[0]:
            self._failed(OSError(errno.ECONNREFUSED, ""))
        return True

    def connect_ex(self, address, /):
        try:
            self.connect(address)
        except names.gaierror:
            raise
        except TimeoutError as problem:
            return problem.errno or errno.EAGAIN
        except OSError as problem:
            return problem.errno
        return 0

    def _take_place(self, dialled):
        """Have the socket's descriptors be the connection's data file."""
        for fd in self._state.fds:
            os.dup2(dialled.data, fd, False)
        os.close(dialled.data)
        dialled.data = -1

    def _adopt(self, dialled):
        """Have the socket be this connection's."""
        state = self._state
        self._take_place(dialled)
        if state.server is not None and not state.listening:
            state.server.close()
            state.server = None
        if state.dialled is not None:
            state.dialled.close()
        state.dialled = dialled

    def _check(self):
        if self._fd < 0:
            raise explained(errno.EBADF, "")

    def _connection(self):
        self._check()
        if self._state.dialled is None:
            raise explained(errno.ENOTCONN, "")
        return self._state.dialled

    def _failed(self, problem):
        """Raise what a call on the connection's files means."""
        made = self._state.dialled.failure(problem)
        raise made from None

    # Sending.

    def send(self, data, flags=0, /):
        dialled = self._connection()
        view = memoryview(data).cast("B")
        if self._state.type == SOCK_STREAM and view[: len(PREFACE)] == PREFACE:
            name, *protocols = bytes(view[len(PREFACE) :]).decode().split()
            dialled.secure("" if name == "-" else name, protocols)
            return len(view)
        return self._write(view, flags)

    def _write(self, view, flags, deadline=None):
        self._wait(POLLOUT, flags, deadline)
        try:
            return hostcalls.call("write", self._fd, bytes(view[:READ_MAX]))[0]
        except OSError as problem:
            self._failed(problem)

    def sendall(self, data, flags=0, /):
        self._connection()
        view = memoryview(data).cast("B")
        deadline = None if self._timeout is None else time.monotonic() + self._timeout
        while len(view):
            view = view[self._write(view, flags, deadline) :]

    def sendto(self, data, *rest):
        address = rest[-1] if rest else None
        if address is None or self._state.type == SOCK_STREAM:
            return self.send(data, *rest[:-1])
        self._check()
        state = self._state
        host, port = _host(address, "sendto")
        if len(memoryview(data).cast("B")) > 65507:
            raise explained(errno.EMSGSIZE, "")
        if (host, port) not in state.others:
            if names.family_of(host) is None:
                names.resolve(host, state.family)
            dialled = dialling.Dialled("udp")
            try:
                dialled.connect(host, port, None)
            except OSError:
                dialled.close()
                raise
            if state.dialled is None:
                self._adopt(dialled)
                state.others[host, port] = None
            else:
                state.others[host, port] = dialled
        other = state.others[host, port]
        return hostcalls.call("write", self._fd if other is None else other.data, bytes(data))[0]

    # Receiving.

    def recv(self, size, flags=0, /):
        if size < 0:
            raise ValueError("negative buffersize in recv")
        return self._receive(size, flags)[0]

    def recv_into(self, buffer, nbytes=0, flags=0):
        view = memoryview(buffer).cast("B")
        data = self.recv(nbytes or len(view), flags)
        view[: len(data)] = data
        return len(data)

    def recvfrom(self, size, flags=0, /):
        data, dialled = self._receive(size, flags)
        return data, self._address(dialled.place("remote"))

    def recvfrom_into(self, buffer, nbytes=0, flags=0):
        view = memoryview(buffer).cast("B")
        data, address = self.recvfrom(nbytes or len(view), flags)
        view[: len(data)] = data
        return len(data), address

    def _receive(self, size, flags):
        state, dialled = self._state, self._connection()
        if state.ahead:
            data = state.ahead[:size]
            if not flags & MSG_PEEK:
                state.ahead = state.ahead[size:]
            return data, dialled
        if state.deaf or (size == 0 and state.type == SOCK_STREAM):
            return b"", dialled
        fd = self._fd
        if any(state.others.values()):
            fd, dialled = self._ready(flags)
        else:
            self._wait(POLLIN, flags)
        try:
            data = hostcalls.call("read", fd, min(size, READ_MAX))[0]
            while flags & MSG_WAITALL and 0 < len(data) < size:
                self._wait(POLLIN, flags)
                more = hostcalls.call("read", fd, min(size - len(data), READ_MAX))[0]
                if not more:
                    break
                data += more
        except TimeoutError:
            raise
        except OSError as problem:
            self._failed(problem)
        if flags & MSG_PEEK:
            state.ahead = data
        return data, dialled

    def _ready(self, flags):
        """Return a datagram socket's connection that has data."""
        state = self._state
        fds = {self._fd: state.dialled} | {other.data: other for other in state.others.values() if other is not None}
        limit = 0 if flags & MSG_DONTWAIT else self._timeout
        wanted = [POLLIN] * len(fds)
        (ready,) = hostcalls.call("poll", list(fds), wanted, -1 if limit is None else int(limit * 1e9))
        for (fd, dialled), events in zip(fds.items(), ready):
            if events:
                return fd, dialled
        if limit == 0:
            raise explained(errno.EAGAIN, "")
        raise TimeoutError("timed out")

    # The rest.

    def _address(self, place):
        return place if self._state.family == AF_INET else (*place, 0, 0)

    def getpeername(self):
        dialled = self._connection()
        if self._state.connecting and not self._is_connected(dialled):
            raise explained(errno.ENOTCONN, "")
        return self._address(dialled.place("remote"))

    def getsockname(self):
        self._check()
        if self._state.dialled is not None:
            return self._address(self._state.dialled.place("local"))
        return self._address(self._state.bound or (ANY[self._state.family], 0))

    def shutdown(self, how, /):
        dialled = self._connection()
        if how not in (0, 1, 2):
            raise explained(errno.EINVAL, "")
        if how != SHUT_WR:
            self._state.deaf = True
        if how != SHUT_RD and self._state.type == SOCK_STREAM:
            try:
                dialled.command("shutdown")
            except OSError:
                raise explained(errno.ENOTCONN, "") from None

    def bind(self, address, /):
        self._check()
        state = self._state
        _, port = _host(address, "bind")
        host = names.text_of(address[0]) or ANY[state.family]
        if state.dialled is not None or state.bound is not None:
            raise explained(errno.EINVAL, "")
        if state.type != SOCK_STREAM:
            if port:
                raise explained(errno.EACCES, f"{NO_DATAGRAM_SERVERS}, so port {port} can't be bound")
            state.bound = host, 0
            return
        if names.family_of(host) is None:
            host = names.resolve(host, state.family)[0][1]
        dialled = dialling.Dialled("tcp")
        try:
            dialled.bind(host, port)
        except OSError as problem:
            dialled.close()
            raise explained(problem.errno, "") from None
        state.server = dialled
        state.bound = host, dialled.place("local")[1]

    def listen(self, backlog=0, /):
        self._check()
        state = self._state
        if state.type != SOCK_STREAM or state.dialled is not None:
            raise explained(errno.EOPNOTSUPP if state.type != SOCK_STREAM else errno.EINVAL, "")
        if state.listening:
            return
        if state.server is None:
            self.bind((ANY[state.family], 0))
        state.server.listen()
        self._take_place(state.server)
        state.listening = True

    def _accept(self):
        self._check()
        state = self._state
        if not state.listening:
            raise explained(errno.EINVAL, "")
        deadline = None if self._timeout is None else time.monotonic() + self._timeout
        while True:
            left = None if deadline is None else max(0, deadline - time.monotonic())
            if not dialling.wait(self._fd, POLLIN, left):
                if self._timeout == 0:
                    raise explained(errno.EAGAIN, "")
                raise TimeoutError("timed out")
            try:
                accepted = state.server.accept()
            except BlockingIOError:
                continue  # another program that has this socket was faster
            made = State(state.family, state.type, state.proto)
            fd = opened(made)
            made.dialled = accepted
            os.dup2(accepted.data, fd, False)
            os.close(accepted.data)
            accepted.data = -1
            return fd, self._address(accepted.place("remote"))

    def setsockopt(self, level, option, value, length=None, /):
        self._check()
        self._state.options[level, option] = value

    def getsockopt(self, level, option, size=0, /):
        self._check()
        state = self._state
        if level == SOL_SOCKET and option == SO_ERROR:
            if state.dialled is None:
                return 0
            state.connecting = False
            if not state.dialled.reason()[0]:
                return 0
            return state.dialled.failure(OSError(errno.ECONNREFUSED, "")).errno
        if level == SOL_SOCKET and option == SO_ACCEPTCONN:
            return int(state.listening)
        known = {SO_TYPE: state.type, SO_DOMAIN: state.family, SO_PROTOCOL: state.proto or numbers.IPPROTO_TCP}
        value = known[option] if level == SOL_SOCKET and option in known else state.options.get((level, option), 0)
        if not size:
            return value if isinstance(value, int) else int.from_bytes(value[:4], sys.byteorder)
        return (value.to_bytes(4, sys.byteorder, signed=True) if isinstance(value, int) else bytes(value))[:size]

    # What `ssl` asks for.

    def _secure(self, name, protocols):
        self._connection().secure(name, protocols)

    def _secured(self):
        """Wait for what `_secure` began; gives what is known of it. OSError."""
        line = socket.recv(self, 64)
        if not line.startswith(dialling.SECURED):
            raise explained(errno.ECONNRESET, "")
        return dialling.tls(int(line.split()[1]))
