"""The classifier against the registries' ranges, and against every way to hide one address in another."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belljar.net.addresses import Endpoint, Scope, canonical, classify, embedded

# IANA's IPv4 and IPv6 special-purpose address registries, with what we make of each block.
REGISTRY = {
    "0.0.0.0/8": Scope.RESERVED,
    "0.0.0.0/32": Scope.RESERVED,
    "10.0.0.0/8": Scope.PRIVATE,
    "100.64.0.0/10": Scope.PRIVATE,
    "127.0.0.0/8": Scope.LOOPBACK,
    "169.254.0.0/16": Scope.LINK_LOCAL,
    "172.16.0.0/12": Scope.PRIVATE,
    "192.0.0.0/24": Scope.RESERVED,
    "192.0.0.0/29": Scope.RESERVED,
    "192.0.0.8/32": Scope.RESERVED,
    "192.0.0.9/32": Scope.RESERVED,
    "192.0.0.10/32": Scope.RESERVED,
    "192.0.0.170/32": Scope.RESERVED,
    "192.0.0.171/32": Scope.RESERVED,
    "192.0.2.0/24": Scope.DOCUMENTATION,
    "192.31.196.0/24": Scope.PUBLIC,
    "192.52.193.0/24": Scope.PUBLIC,
    "192.88.99.0/24": Scope.RESERVED,
    "192.168.0.0/16": Scope.PRIVATE,
    "192.175.48.0/24": Scope.PUBLIC,
    "198.18.0.0/15": Scope.RESERVED,
    "198.51.100.0/24": Scope.DOCUMENTATION,
    "203.0.113.0/24": Scope.DOCUMENTATION,
    "224.0.0.0/4": Scope.MULTICAST,
    "240.0.0.0/5": Scope.RESERVED,
    "255.255.255.255/32": Scope.BROADCAST,
    "::/128": Scope.RESERVED,
    "::1/128": Scope.LOOPBACK,
    "64:ff9b:1::/48": Scope.RESERVED,
    "100::/64": Scope.RESERVED,
    "100:0:0:1::/64": Scope.RESERVED,
    "2001::/23": Scope.RESERVED,
    "2001:1::1/128": Scope.RESERVED,
    "2001:2::/48": Scope.RESERVED,
    "2001:3::/32": Scope.RESERVED,
    "2001:10::/28": Scope.RESERVED,
    "2001:20::/28": Scope.RESERVED,
    "2001:30::/28": Scope.RESERVED,
    "2001:db8::/32": Scope.DOCUMENTATION,
    "2620:4f:8000::/48": Scope.PUBLIC,
    "3fff::/20": Scope.DOCUMENTATION,
    "5f00::/16": Scope.RESERVED,
    "fc00::/7": Scope.PRIVATE,
    "fe80::/10": Scope.LINK_LOCAL,
    "fec0::/10": Scope.PRIVATE,
    "ff00::/8": Scope.MULTICAST,
    "4000::/3": Scope.RESERVED,
}
HOSTILE = [network for network, scope in REGISTRY.items() if scope is not Scope.PUBLIC and "." in network]


@pytest.mark.parametrize("block", REGISTRY)
def test_every_block_of_the_registries(block: str) -> None:
    network = ip_network(block)
    for address in {network[0], network[-1], network[network.num_addresses // 2]}:
        scope = classify(address)
        # Inside an IPv6 block an embedded address may make it something else that is not public either.
        assert scope is REGISTRY[block] or (address.version == 6 and Scope.PUBLIC not in (scope, REGISTRY[block]))


@pytest.mark.parametrize("text", ["8.8.8.8", "1.1.1.1", "93.184.215.14", "2606:4700::1111", "2a00:1450:4001::1"])
def test_ordinary_addresses_are_public(text: str) -> None:
    assert Endpoint(ip_address(text), 443).is_public_internet()


@pytest.mark.parametrize(
    "text", ["169.254.169.254", "100.100.100.200", "168.63.129.16", "fd00:ec2::254", "192.0.0.192", "fe80::a9fe:a9fe"]
)
def test_metadata_services_are_not_public(text: str) -> None:
    assert not Endpoint(ip_address(text), 80).is_public_internet()


def embeddings(inner: IPv4Address, prefix: int) -> list[IPv6Address]:
    """Every way we know to write an IPv4 address into an IPv6 one."""
    bits = int(inner)
    high, low = bits >> 16, bits & 0xFFFF
    base = int(IPv6Address("64:ff9b:1::"))
    return [
        IPv6Address((0xFFFF << 32) | bits),
        IPv6Address((0xFFFF << 48) | bits),
        IPv6Address(bits) if bits > 0xFFFF else IPv6Address((0xFFFF << 32) | bits),
        IPv6Address(int(IPv6Address("64:ff9b::")) | bits),
        IPv6Address(base | high << 64 | low << 40),
        IPv6Address(base | prefix << 72 & (0xFF << 72) | (bits >> 24) << 64 | (bits & 0xFFFFFF) << 32),
        IPv6Address(base | bits << 24),
        IPv6Address(base | bits),
        IPv6Address(0x2002 << 112 | bits << 80 | prefix),
        IPv6Address(0x2001 << 112 | 0x08080808 << 64 | (~bits & 0xFFFFFFFF)),
        IPv6Address(0x2001 << 112 | bits << 64 | (~0x08080808 & 0xFFFFFFFF)),
        IPv6Address(0x2606_4700 << 96 | 0x00005EFE << 32 | bits),
        IPv6Address(0x2606_4700 << 96 | 0x02005EFE << 32 | bits),
    ]


@given(st.sampled_from(HOSTILE), st.integers(0, 2**32 - 1), st.integers(0, 2**16))
def test_no_embedding_hides_an_address_that_is_not_public(block: str, offset: int, prefix: int) -> None:
    network = ip_network(block)
    assert isinstance(network, IPv4Network)
    inner = network[offset % network.num_addresses]
    for outer in embeddings(inner, prefix):
        assert classify(canonical(outer)) is not Scope.PUBLIC, f"{inner} as {outer}"


@given(st.integers(0, 2**32 - 1))
def test_a_mapped_address_is_the_address_it_maps(bits: int) -> None:
    inner = IPv4Address(bits)
    assert canonical(IPv6Address((0xFFFF << 32) | bits)) == inner
    assert inner in embedded(IPv6Address((0xFFFF << 32) | bits))


@given(st.integers(0, 2**128 - 1))
def test_public_is_always_global_unicast_or_a_translation_of_one(bits: int) -> None:
    address = IPv6Address(bits)
    if classify(address) is Scope.PUBLIC:
        assert address in IPv6Network("2000::/3") or address in IPv6Network("64:ff9b::/96")


def test_each_scope_has_its_question() -> None:
    place = Endpoint(ip_address("10.1.2.3"), 80)
    assert place.is_private()
    assert not place.is_public_internet()
    assert Endpoint(ip_address("127.1.2.3"), 80).is_loopback()
    assert Endpoint(ip_address("169.254.1.1"), 80).is_link_local()
    assert Endpoint(ip_address("224.0.0.1"), 80).is_multicast()
    assert Endpoint(ip_address("255.255.255.255"), 80).is_broadcast()
    assert Endpoint(ip_address("192.0.2.1"), 80).is_documentation()
    assert Endpoint(ip_address("240.0.0.1"), 80).is_reserved()
    assert str(Endpoint(ip_address("2001:db8::1"), 443)) == "[2001:db8::1]:443"
