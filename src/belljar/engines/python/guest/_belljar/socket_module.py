"""The module `_socket` of a sandbox, for the standard library's `socket` to stand on."""

import _socket as builtin
import os
import sys
import types

from _belljar import hostcalls, names, numbers
from _belljar.socket_state import close, dup
from _belljar.sockets import default_timeout, socket


def getdefaulttimeout():
    return default_timeout[0]


def setdefaulttimeout(value, /):
    if value is not None and float(value) < 0:
        raise ValueError("Timeout value out of range")
    default_timeout[0] = None if value is None else float(value)


def gethostname():
    return os.fsdecode(hostcalls.call("hostname")[0])


def module():
    """`_socket`, as the standard library imports it."""
    made = types.ModuleType("_socket", __doc__)
    fixed = {
        name: value for name, value in vars(builtin).items() if name.startswith(("IP_", "IPV6_", "TCP_", "INADDR"))
    }
    made.__dict__.update(fixed)
    made.__dict__.update({name: value for name, value in vars(numbers).items() if name.isupper()})
    for name in "htonl htons ntohl ntohs inet_aton inet_ntoa gaierror herror".split():
        setattr(made, name, getattr(builtin, name))
    for name in (
        "getaddrinfo gethostbyname gethostbyname_ex gethostbyaddr getnameinfo getservbyname getservbyport "
        "getprotobyname inet_pton inet_ntop"
    ).split():
        setattr(made, name, getattr(names, name))
    made.socket = made.SocketType = socket
    made.timeout, made.error, made.has_ipv6, made.SOMAXCONN = TimeoutError, OSError, True, 4096
    made.close, made.dup, made.gethostname = close, dup, gethostname
    made.getdefaulttimeout, made.setdefaulttimeout = getdefaulttimeout, setdefaulttimeout
    socket.__module__ = "_socket"
    return made


def install():
    """Install `_socket`; call before anything imports `socket`."""
    sys.modules["_socket"] = module()
