"""Names, addresses and services for guest Python's `socket`: getaddrinfo and its family."""

import _socket as builtin
import errno
import ipaddress

from _belljar import dialling, hostcalls
from _belljar.numbers import (
    AF_INET,
    AF_INET6,
    AF_UNSPEC,
    AI_CANONNAME,
    AI_NUMERICHOST,
    AI_PASSIVE,
    EAI_AGAIN,
    EAI_FAMILY,
    EAI_NONAME,
    EAI_SERVICE,
    EAI_SOCKTYPE,
    IPPROTO_TCP,
    IPPROTO_UDP,
    NI_NAMEREQD,
    NI_NUMERICSERV,
    SOCK_DGRAM,
    SOCK_RAW,
    SOCK_STREAM,
)

gaierror, herror = builtin.gaierror, builtin.herror


class DeniedError(gaierror, PermissionError):
    """A name that the policy denies: EACCES with its reason, and still caught where a name may be missing."""

    __module__ = "socket"

    def __str__(self):
        return f"[Errno {hostcalls.TO_LINUX[self.errno]}] {self.strerror}"


ANY = {AF_INET: "0.0.0.0", AF_INET6: "::"}  # noqa: S104 - nothing is bound here
LOOPBACK = {AF_INET: "127.0.0.1", AF_INET6: "::1"}
SERVICES = {
    "ftp": 21, "ssh": 22, "telnet": 23, "smtp": 25, "domain": 53, "http": 80, "pop3": 110, "ntp": 123, "imap2": 143,
    "imap": 143, "snmp": 161, "ldap": 389, "https": 443, "submissions": 465, "smtps": 465, "submission": 587,
    "ldaps": 636, "imaps": 993, "pop3s": 995, "mysql": 3306, "postgresql": 5432, "redis": 6379, "http-alt": 8080,
}  # fmt: skip
TEXTS = {
    EAI_NONAME: "Name or service not known",
    EAI_AGAIN: "Temporary failure in name resolution",
    EAI_FAMILY: "ai_family not supported",
    EAI_SERVICE: "Servname not supported for ai_socktype",
    EAI_SOCKTYPE: "ai_socktype not supported",
}
_KINDS = ((SOCK_STREAM, IPPROTO_TCP), (SOCK_DGRAM, IPPROTO_UDP), (SOCK_RAW, 0))
_ASKED = {AF_INET: "A", AF_INET6: "AAAA"}


def _failed(code, text=""):
    return gaierror(code, f"{TEXTS[code]} ({text})" if text else TEXTS[code])


def inet_pton(family, text):
    if family == AF_INET:
        return builtin.inet_pton(builtin.AF_INET, text)
    if family != AF_INET6:
        raise dialling.explained(errno.EAFNOSUPPORT, "")
    try:
        return ipaddress.IPv6Address(text.partition("%")[0]).packed
    except ValueError:
        raise OSError("illegal IP address string passed to inet_pton") from None


def inet_ntop(family, packed):
    if family == AF_INET:
        return builtin.inet_ntop(builtin.AF_INET, packed)
    if family != AF_INET6:
        raise ValueError(f"unknown address family {family}")
    if len(packed) != 16:
        raise ValueError("invalid length of packed IP address string")
    return str(ipaddress.IPv6Address(bytes(packed)))


def family_of(host):
    """The family of an address in its plain spelling; None for a name."""
    for family in (AF_INET, AF_INET6):
        try:
            inet_pton(family, host)
        except (OSError, ValueError):
            continue
        return family
    return None


def text_of(host):
    """A host as text, international names in their ASCII form."""
    if isinstance(host, (bytes, bytearray)):
        return bytes(host).decode("ascii")
    if not isinstance(host, str):
        raise TypeError("getaddrinfo() argument 1 must be string or None")
    return host if host.isascii() else host.encode("idna").decode("ascii")


def resolve(host, family):
    """The addresses of a name or address: family and text of each. gaierror; DeniedError where the policy says no."""
    found = family_of(host)
    if found is not None:
        if family not in (AF_UNSPEC, found):
            raise gaierror(-9, "Address family for hostname not supported")
        return [(found, host)]
    problem = None
    for asked in (AF_INET, AF_INET6) if family == AF_UNSPEC else (family,):
        try:
            addresses = dialling.look_up(host, _ASKED[asked])
        except dialling.NoSuchName as error:
            problem = error
            break
        if addresses:
            return [(asked, address) for address in addresses]
    # What the network knows comes first: an owner may have said where `localhost` is.
    written = [(family_of(address), address) for address in dialling.listed(host)]
    written = [entry for entry in written if entry[0] is not None and family in (AF_UNSPEC, entry[0])]
    if written:
        return written
    if problem is not None and problem.kind == "denied":
        raise DeniedError(errno.EACCES, f"Permission denied ({problem})")
    if problem is None or problem.kind in ("nxdomain", "protocol"):
        raise _failed(EAI_NONAME, str(problem) if problem is not None and problem.kind != "nxdomain" else "")
    raise _failed(EAI_AGAIN, str(problem))


def _port(service, kind):
    if service is None:
        return 0
    if isinstance(service, int):
        if not 0 <= service <= 65535:
            raise OverflowError("getaddrinfo() argument 2: port must be 0-65535.")
        return service
    word = service.decode("ascii") if isinstance(service, bytes) else service
    if word.isascii() and word.isdigit():
        return int(word) & 0xFFFF
    if word not in SERVICES or kind == SOCK_RAW:
        raise _failed(EAI_SERVICE)
    return SERVICES[word]


def getaddrinfo(host, port, family=AF_UNSPEC, type=0, proto=0, flags=0):
    if family not in (AF_UNSPEC, AF_INET, AF_INET6):
        raise _failed(EAI_FAMILY)
    kinds = [(kind, number) for kind, number in _KINDS if type in (0, kind) and proto in (0, number)]
    if not kinds:
        raise _failed(EAI_SOCKTYPE)
    if host is None and port is None:
        raise _failed(EAI_NONAME)
    number = _port(port, type)
    if host is None or len(host) == 0:
        any_address = ANY if flags & AI_PASSIVE else LOOPBACK
        found = [(found, text) for found, text in any_address.items() if family in (AF_UNSPEC, found)]
        name = ""
    else:
        name = text_of(host)
        if flags & AI_NUMERICHOST and family_of(name) is None:
            raise _failed(EAI_NONAME)
        found = resolve(name, family)
    canonical = name if flags & AI_CANONNAME else ""
    return [
        (where, kind, proto or protocol, canonical, (text, number) if where == AF_INET else (text, number, 0, 0))
        for where, text in found
        for kind, protocol in kinds
    ]


def gethostbyname(name):
    return resolve(text_of(name), AF_INET)[0][1] if len(name) else ANY[AF_INET]


def gethostbyname_ex(name):
    return text_of(name), [], [address for _, address in resolve(text_of(name), AF_INET)]


def gethostbyaddr(name):
    host = text_of(name)
    address = resolve(host, AF_UNSPEC)[0][1]
    for line in dialling._whole("/etc/hosts").splitlines():
        words = line.partition("#")[0].split()
        if len(words) > 1 and words[0] == address:
            return words[1], words[2:], [address]
    raise herror(1, "Unknown host")


def getnameinfo(address, flags):
    host, port = address[:2]
    if family_of(host) is None:
        raise _failed(EAI_NONAME)
    if flags & NI_NAMEREQD:
        raise _failed(EAI_NONAME)
    names = {number: name for name, number in reversed(SERVICES.items())}
    return host, str(port) if flags & NI_NUMERICSERV else names.get(port, str(port))


def getservbyname(name, protocol=None):
    if name not in SERVICES:
        raise OSError("service/proto not found")
    return SERVICES[name]


def getservbyport(port, protocol=None):
    for name, number in SERVICES.items():
        if number == port:
            return name
    raise OSError("port/proto not found")


def getprotobyname(name):
    found = {"ip": 0, "icmp": 1, "tcp": 6, "udp": 17, "ipv6": 41}.get(name)
    if found is None:
        raise OSError("protocol not found")
    return found
