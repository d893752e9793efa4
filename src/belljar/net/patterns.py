"""Patterns of destinations: `api.example.com`, `*.example.com`, `10.0.0.5:5432`, `10.0.0.0/8`."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Final

from belljar.abi.errors import PolicyError
from belljar.net.addresses import Address
from belljar.net.hosts import BadHost, parse_address, parse_name, split_port

WEB_PORTS: Final = frozenset({80, 443})


@dataclass(frozen=True, slots=True)
class Pattern:
    """One destination or a family of them. Exactly one of `name` and `network` is set."""

    text: str
    name: str | None = None
    """A host name; with `below`, every name that ends in it (and "" below: every name)."""
    below: bool = False
    network: IPv4Network | IPv6Network | None = None
    port: int | None = None

    def covers_name(self, name: str) -> bool:
        if self.name is None:
            return False
        if not self.below:
            return name == self.name
        return not self.name or name.endswith("." + self.name)

    def covers_address(self, address: Address) -> bool:
        return self.network is not None and address.version == self.network.version and address in self.network

    def covers_port(self, port: int) -> bool:
        """A pattern without a port means the web's two."""
        return port in WEB_PORTS if self.port is None else port == self.port


def parse_pattern(text: str) -> Pattern:
    """PolicyError, saying what a pattern looks like."""
    if not isinstance(text, str):
        raise PolicyError(f"a network pattern is a str like 'api.example.com', not {type(text).__name__}")
    try:
        return _parse(text)
    except BadHost as error:
        raise PolicyError(
            f"bad network pattern: {error}. Write 'api.example.com', '*.example.com', 'db.example.com:5432', "
            "'10.0.0.5:5432', '[2001:db8::1]:443', '10.0.0.0/8' or '*'."
        ) from None


def _parse(text: str) -> Pattern:
    if "/" in text:
        base, _, rest = text.partition("/")
        length, colon, port = rest.partition(":")
        try:
            network = ip_network(f"{base.strip('[]')}/{length}")
        except ValueError as error:
            raise BadHost(f"{text!r}: {error}") from None
        return Pattern(text, network=network, port=split_port(f"x:{port}")[1] if colon else None)
    host, port_number = split_port(text)
    address = parse_address(host.strip("[]") if host.startswith("[") else host)
    if address is not None:
        return Pattern(text, network=ip_network(address), port=port_number)
    if host == "*":
        return Pattern(text, name="", below=True, port=port_number)
    if host.startswith("*."):
        return Pattern(text, name=parse_name(host[2:]), below=True, port=port_number)
    return Pattern(text, name=parse_name(host), port=port_number)
