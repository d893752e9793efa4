"""DNS records as lines: which addresses and hosts a record tells of."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from belljar.net.addresses import Address, canonical
from belljar.net.errors import NetError
from belljar.net.hosts import parse_address

Line = tuple[str, int, str, str]
"""Name, time to live, type and data of a record."""

_TARGETS: Final = {"CNAME": 0, "DNAME": 0, "NS": 0, "PTR": 0, "MX": 1, "SRV": 3, "HTTPS": 1, "SVCB": 1}
"""The word of a record's data that is the name of a host."""
_HINT: Final = re.compile(r'ipv[46]hint="?([0-9a-fA-F.:,]+)')


def no_such_name(name: str) -> NetError:
    """Make the error for a name that does not exist or is hidden: both look alike."""
    return NetError("dns", f"no such name: {name}")


def target_of(type: str, data: str) -> str | None:
    """The host that a record names, if it names one."""
    words = data.split()
    at = _TARGETS.get(type)
    name = words[at].rstrip(".") if at is not None and at < len(words) else ""
    return name or None


def hints(type: str, data: str) -> list[Address]:
    """The addresses in the parameters of an HTTPS or SVCB record."""
    found: list[Address] = []
    for match in _HINT.finditer(data) if type in ("HTTPS", "SVCB") else ():
        found += [canonical(address) for text in match[1].split(",") if (address := parse_address(text)) is not None]
    return found


def pointed_at(name: str) -> Address | None:
    """The address that a reverse name (`4.3.2.1.in-addr.arpa`) stands for."""
    labels = name.lower().split(".")
    try:
        if labels[-2:] == ["in-addr", "arpa"]:
            octets = [*reversed(labels[:-2]), "0", "0", "0"][:4]  # a part of one is a network
            return IPv4Address(".".join(octets))
        if labels[-2:] == ["ip6", "arpa"]:
            digits = "".join(reversed(labels[:-2])).ljust(32, "0")
            return canonical(IPv6Address(int(digits, 16)))
    except ValueError:
        return None
    return None
