"""Connections and names over the files of /net: what guest Python's `socket` and `ssl` stand on (docs/network.md)."""

import errno
import os

from _belljar import hostcalls
from _belljar.protocol import AT_FDCWD

O_RDWR, O_CLOEXEC, O_NONBLOCK = 0o2, 0o2000000, 0o4000
POLLIN, POLLOUT = 1, 4
KINDS = {
    "denied": errno.EACCES,
    "dns": errno.EHOSTUNREACH,
    "connect": errno.ECONNREFUSED,
    "timeout": errno.ETIMEDOUT,
    "protocol": errno.EPROTO,
    "too-large": errno.EFBIG,
    "reset": errno.ECONNRESET,
}
TEXTS = {
    errno.ETIMEDOUT: "Connection timed out",
    errno.ENOTCONN: "Transport endpoint is not connected",
    errno.EISCONN: "Transport endpoint is already connected",
    errno.EHOSTUNREACH: "No route to host",
    errno.EINPROGRESS: "Operation now in progress",
    errno.EALREADY: "Operation already in progress",
    errno.EAGAIN: "Resource temporarily unavailable",
    errno.ENOTSOCK: "Socket operation on non-socket",
    errno.EAFNOSUPPORT: "Address family not supported by protocol",
    errno.EMSGSIZE: "Message too long",
    errno.EADDRINUSE: "Address already in use",
    errno.EADDRNOTAVAIL: "Cannot assign requested address",
}
"""Error messages of Linux that differ from this C library's."""
SECURED = b"secured "
"""Read where TLS begins; the connection's number and a newline follow."""
NO_NETWORK = "this sandbox was granted no network"
READ_MAX = 1 << 20


def _open(path):
    return hostcalls.call("open", AT_FDCWD, path.encode(), O_RDWR | O_CLOEXEC, 0)[0]


def _whole(path):
    try:
        return hostcalls.call("read_file", AT_FDCWD, path.encode())[0].decode("utf-8", "replace")
    except OSError:
        return ""


def explained(number, text):
    """An OSError with Linux's words for its number, and the reason of this one."""
    words = TEXTS.get(number) or os.strerror(number)
    return OSError(number, f"{words} ({text})" if text else words)


def wait(fd, events, timeout):
    """Wait for a descriptor; return whether it became ready in time. `timeout` in seconds, None for ever."""
    return bool(hostcalls.call("poll", [fd], [events], -1 if timeout is None else max(0, int(timeout * 1e9)))[0][0])


class Dialled:
    """One connection: its control file, and its data once it is under way."""

    def __init__(self, protocol, control=-1):
        """A new one, or that of a control file."""
        try:
            self.control = control if control >= 0 else _open(f"/net/{protocol}/clone")
        except OSError:
            raise explained(errno.EACCES, NO_NETWORK) from None
        number = hostcalls.call("read", self.control, 64)[0].decode().strip()
        self.directory = f"/net/{protocol}/{number}"
        self.data = -1

    def command(self, *lines):
        hostcalls.call("write", self.control, "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"))

    def connect(self, host, port, timeout):
        """Dial; with a timeout of 0 only begin to. OSError, with the reason."""
        lines = ["web", *(["nowait"] if timeout == 0 else [f"timeout {timeout:.3f}"] if timeout is not None else [])]
        try:
            self.command(*lines, f"connect {host}!{port}")
            self.data = _open(f"{self.directory}/data")
        except OSError as error:
            raise self.failure(error) from None

    def bind(self, host, port):
        """Reserve a port. OSError."""
        self.command(f"bind {host}!{port}")

    def listen(self):
        """Let clients connect; `data` is readable while one waits."""
        self.command("listen")
        self.data = _open(f"{self.directory}/data")

    def accept(self):
        """The connection with the next client. OSError; EAGAIN if there is none, in which case wait for `data`."""
        flags = O_RDWR | O_CLOEXEC | O_NONBLOCK
        accepted = Dialled("tcp", hostcalls.call("open", AT_FDCWD, f"{self.directory}/listen".encode(), flags, 0)[0])
        try:
            accepted.data = _open(f"{accepted.directory}/data")
        except BaseException:
            accepted.close()
            raise
        return accepted

    def secure(self, name, protocols):
        """Begin with TLS: SECURED comes as the next data when it is there, or reading fails."""
        try:
            self.command("nowait", " ".join(["tls", name or "-", *protocols]))
        except OSError as error:
            raise self.failure(error) from None

    def reason(self):
        """Return the connection's error as (kind, text), both empty if there is none."""
        kind, _, text = _whole(f"{self.directory}/error").strip().partition(": ")
        return kind, text

    def failure(self, error):
        """The error to raise for one that a call on these files ended with."""
        kind, text = self.reason()
        if kind == "tls":
            import ssl

            refused = ssl.SSLCertVerificationError if "certificate" in text else ssl.SSLError
            made = refused(1, f"[SSL: {'CERTIFICATE_VERIFY_FAILED' if 'certificate' in text else 'TLS'}] {text}")
            made.reason, made.library = "CERTIFICATE_VERIFY_FAILED" if "certificate" in text else "TLS", "SSL"
            if refused is ssl.SSLCertVerificationError:
                made.verify_code, made.verify_message = 1, text
            return made
        return explained(KINDS.get(kind, error.errno), text)

    def place(self, name):
        """The address and port of this end ("local") or the other ("remote")."""
        host, _, port = _whole(f"{self.directory}/{name}").strip().rpartition("!")
        return host, int(port or 0)

    def close(self):
        for fd in (self.control, self.data):
            if fd >= 0:
                os.close(fd)
        self.control = self.data = -1


def tls(number):
    """Return the TLS fields of a connection: version, cipher, certificate and so on."""
    lines = _whole(f"/net/tcp/{number}/tls").splitlines()
    return {key: value for key, _, value in (line.partition(" ") for line in lines)}


class NoSuchName(Exception):
    """A name that can't be had. `kind`: denied, nxdomain, or another that may pass."""

    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


def look_up(name, kind):
    """The addresses of a name, of type A or AAAA; perhaps none. NoSuchName."""
    try:
        fd = _open("/net/dns")
    except OSError:
        raise NoSuchName("denied", NO_NETWORK) from None
    try:
        try:
            hostcalls.call("write", fd, f"{name} {kind}".encode("utf-8", "surrogateescape"))
        except OSError as error:
            said = hostcalls.call("read", fd, READ_MAX)[0].decode("utf-8", "replace").strip().removeprefix("! ")
            problem, _, text = said.partition(": ")
            raise NoSuchName("nxdomain" if error.errno == errno.ENOENT else problem, text) from None
        lines = hostcalls.call("read", fd, READ_MAX)[0].decode("utf-8", "replace").splitlines()
    finally:
        os.close(fd)
    records = [line.split(" ", 3) for line in lines if line.count(" ") >= 3]
    return [data for _, _, found, data in records if found == kind]


def listed(name):
    """The addresses that /etc/hosts has for a name."""
    lines = (line.partition("#")[0].split() for line in _whole("/etc/hosts").splitlines())
    return [words[0] for words in lines if name.lower() in (word.lower() for word in words[1:])]
