"""Decisions without any socket: what a policy sees, what it can say, and what is a no."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_address
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belljar.abi.errors import PolicyError
from belljar.net.addresses import Endpoint
from belljar.net.network import Network, NetworkLimits
from belljar.net.policy import AcceptDns, AcceptHttp, AcceptRaw, Conn, Denied, HttpMatch, Verdict

SRC = Endpoint(ip_address("10.0.2.15"), 40000)


def tcp(ip: str, port: int, *names: str, protocol: str = "tcp") -> Conn:
    return Conn(protocol, SRC, Endpoint(ip_address(ip), port), hostnames=names)


def dns(name: str, kind: str = "A") -> Conn:
    return Conn("dns", SRC, Endpoint(ip_address("10.0.2.3"), 53), question=(name, kind))


def decide(network: Network, conn: Conn) -> Verdict:
    assert network.decide is not None
    return conn.verdict(network.decide(conn))


def accepted(network: Network, conn: Conn) -> bool:
    return not isinstance(decide(network, conn), Denied)


PUBLIC = "93.184.215.14"


def test_a_name_opens_its_dns_and_its_web() -> None:
    network = Network.allow("api.example.com")
    assert accepted(network, dns("api.example.com"))
    assert accepted(network, dns("api.example.com", "AAAA"))
    assert isinstance(decide(network, tcp(PUBLIC, 443, "api.example.com")), AcceptHttp)
    assert accepted(network, tcp(PUBLIC, 80, "api.example.com"))
    for refused in (
        dns("example.com"),
        dns("x.api.example.com"),
        dns("api.example.com", "TXT"),
        dns("api.example.com", "NULL"),
        tcp(PUBLIC, 22, "api.example.com"),
        tcp(PUBLIC, 8080, "api.example.com"),
        tcp(PUBLIC, 443),
        tcp(PUBLIC, 443, "evil.com"),
        tcp("10.0.0.1", 443, "api.example.com"),
        tcp("169.254.169.254", 80, "api.example.com"),
        tcp("::1", 80, "api.example.com"),
        tcp(PUBLIC, 443, "api.example.com", protocol="udp"),
    ):
        assert not accepted(network, refused), refused


@pytest.mark.parametrize(
    "name", ["good.com.evil.com", "evil-good.com", "evilgood.com", "good.co", "xgood.com", "com", "www.good.com"]
)
def test_look_alikes_are_not_the_name(name: str) -> None:
    network = Network.allow("good.com")
    assert not accepted(network, dns(name))
    assert not accepted(network, tcp(PUBLIC, 443, name))


def test_wildcards_cover_what_is_below() -> None:
    network = Network.allow("*.example.com")
    assert accepted(network, dns("a.example.com"))
    assert accepted(network, tcp(PUBLIC, 443, "a.b.example.com"))
    assert not accepted(network, dns("example.com"))
    assert not accepted(network, dns("aexample.com"))
    everything = Network.allow("*")
    assert accepted(everything, tcp(PUBLIC, 443, "any.org"))
    assert not accepted(everything, tcp("10.0.0.1", 443, "any.org"))
    assert not accepted(everything, tcp(PUBLIC, 443))


def test_an_address_and_port_is_open_for_any_protocol() -> None:
    network = Network.allow("10.0.0.5:5432", "[2001:db8::1]:443", "192.168.0.0/16")
    assert isinstance(decide(network, tcp("10.0.0.5", 5432)), AcceptRaw)
    assert accepted(network, tcp("2001:db8::1", 443))
    assert isinstance(decide(network, tcp("192.168.3.4", 80)), AcceptHttp)
    for refused in (tcp("10.0.0.5", 5433), tcp("10.0.0.6", 5432), tcp("192.168.3.4", 22), dns("x.org")):
        assert not accepted(network, refused)


def test_a_private_address_needs_to_be_named() -> None:
    both = Network.allow("db.corp", "10.0.0.0/8")
    question = decide(both, dns("db.corp"))
    assert isinstance(question, AcceptDns)
    assert question.permits(ip_address("10.1.1.1"))
    assert not question.permits(ip_address("192.168.1.1"))
    assert accepted(both, tcp("10.1.1.1", 443, "db.corp"))
    pinned = Network.allow("db.corp", hosts={"db.corp": "127.0.0.1"})
    assert accepted(pinned, tcp("127.0.0.1", 443, "db.corp"))
    assert not accepted(pinned, tcp("127.0.0.2", 443, "db.corp"))
    assert not accepted(pinned, tcp("127.0.0.1", 443, "other.corp"))


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "http://x.org",
        "x.org/path",
        "*x.org",
        "a.*.org",
        "x.org:0",
        "1.2.3",
        "10.0.0.1/99",
        "user@x.org",
        "x y",
        "b\u00fccher.de",
        "10.0.0.0/8:x",
    ],
)
def test_bad_patterns_are_refused_when_made(pattern: str) -> None:
    with pytest.raises(PolicyError, match="pattern"):
        Network.allow(pattern)


def test_other_mistakes_are_refused_when_made() -> None:
    with pytest.raises(PolicyError, match="resolver"):
        Network.allow("x.org", resolvers=["dns.google"])
    with pytest.raises(PolicyError, match="hosts"):
        Network.allow("x.org", hosts={"x.org": "y.org"})
    with pytest.raises(PolicyError, match="function"):
        Network.policy("x.org")  # type: ignore[arg-type]
    with pytest.raises(PolicyError, match="connections"):
        NetworkLimits(connections=0)


# Policies of the owner's own.


def verdict(policy: Callable[[Conn], Any], conn: Conn) -> Verdict:
    return conn.verdict(policy(conn))


def test_matches_say_what_they_match() -> None:
    conn = tcp(PUBLIC, 443, "api.example.com")
    assert conn.match_dns() is None
    assert conn.match_udp() is None
    assert conn.match_tcp(f"{PUBLIC}:443") is not None
    assert conn.match_tcp(f"{PUBLIC}:80") is None
    assert conn.match_tcp("93.184.0.0/16") is not None
    assert conn.match_http("api.example.com") is not None
    assert conn.match_http("*.example.com") is not None
    assert conn.match_http("example.com") is None
    assert conn.match_http("api.example.com:8443") is None
    seen: list[str | None] = []

    def look(candidate: HttpMatch) -> bool:
        seen.append(candidate.hostname)
        return candidate.port == 443

    assert conn.match_http(look) is not None
    assert seen == ["api.example.com"]
    assert tcp(PUBLIC, 25, "api.example.com").match_http("api.example.com") is None
    question = dns("x.org", "TXT").match_dns()
    assert question is not None
    assert (question.name, question.type) == ("x.org", "TXT")
    assert dns("x.org").match_dns("*.org") is not None
    assert dns("x.org").match_http("x.org") is None


def test_no_accept_is_a_no() -> None:
    assert isinstance(verdict(lambda conn: None, tcp(PUBLIC, 1)), Denied)
    assert isinstance(verdict(lambda conn: True, tcp(PUBLIC, 1)), Denied)
    assert isinstance(verdict(lambda conn: conn.match_tcp(), tcp(PUBLIC, 1)), Denied)


@pytest.mark.parametrize("junk", [False, 0, "yes", 1, [], {}, object(), AcceptRaw(), Denied("x")])
def test_junk_after_an_accept_is_a_no(junk: object) -> None:
    def policy(conn: Conn) -> object:
        conn.accept()
        return junk

    assert isinstance(verdict(policy, tcp(PUBLIC, 1)), Denied)


def test_an_accept_counts_once_and_in_time() -> None:
    conn = tcp(PUBLIC, 1)
    conn.accept()
    with pytest.raises(PolicyError, match="twice"):
        conn.accept()
    conn.verdict(None)
    late = tcp(PUBLIC, 1)
    late.verdict(None)
    with pytest.raises(PolicyError, match="after"):
        late.accept()


def test_dns_may_name_its_resolvers() -> None:
    conn = dns("x.org")
    question = conn.match_dns()
    assert question is not None
    result = conn.verdict(question.accept(resolvers=["1.1.1.1", "127.0.0.1:5353", "[::1]:53"]))
    assert isinstance(result, AcceptDns)
    assert result.resolvers == (("1.1.1.1", 53), ("127.0.0.1", 5353), ("::1", 53))
    assert not result.permits(ip_address("10.0.0.1"))


LABELS = st.sampled_from(["a", "b", "example", "com", "org", "evil"])
NAMES = st.lists(LABELS, min_size=1, max_size=3).map(".".join)
ADDRESSES = st.sampled_from(["10.0.0.1", "127.0.0.1", PUBLIC, "8.8.8.8", "::1", "2606:4700::1", "169.254.169.254"])
PATTERNS = st.one_of(
    NAMES,
    NAMES.map(lambda name: f"*.{name}"),
    st.tuples(NAMES, st.sampled_from([22, 80, 443])).map(lambda pair: f"{pair[0]}:{pair[1]}"),
    st.tuples(ADDRESSES, st.sampled_from([22, 80, 443])).map(
        lambda p: f"[{p[0]}]:{p[1]}" if ":" in p[0] else f"{p[0]}:{p[1]}"
    ),
    st.sampled_from(["10.0.0.0/8", "*", "8.8.0.0/16:53"]),
)
CONNS = st.one_of(
    st.tuples(ADDRESSES, st.sampled_from([22, 53, 80, 443]), st.lists(NAMES, max_size=2)).map(
        lambda t: (t[0], t[1], tuple(t[2]))
    ),
    st.tuples(NAMES, st.sampled_from(["A", "AAAA", "TXT"])),
)


@given(st.lists(PATTERNS, max_size=5), st.lists(PATTERNS, max_size=3), CONNS)
def test_a_narrower_policy_never_allows_more(few: list[str], more: list[str], what: tuple[Any, ...]) -> None:
    def conn() -> Conn:
        return dns(*what) if len(what) == 2 else tcp(what[0], what[1], *what[2])

    narrow, wide = Network.allow(*few), Network.allow(*few, *more)
    if accepted(narrow, conn()):
        assert accepted(wide, conn())
    if isinstance(decide(narrow, conn()), AcceptRaw):
        assert isinstance(decide(wide, conn()), AcceptRaw)
    for address in ("10.1.1.1", "127.0.0.1", PUBLIC):
        first, second = decide(narrow, conn()), decide(wide, conn())
        if isinstance(first, AcceptDns) and first.permits(ip_address(address)):
            assert isinstance(second, AcceptDns)
            assert second.permits(ip_address(address))


@given(st.lists(PATTERNS, max_size=5), CONNS)
def test_what_is_not_public_opens_only_by_its_address(patterns: list[str], what: tuple[Any, ...]) -> None:
    if len(what) == 2:
        return
    named = [pattern for pattern in patterns if not pattern[0].isdigit() and not pattern.startswith("[")]
    conn = tcp(what[0], what[1], *what[2])
    if not conn.dst.is_public_internet():
        assert not accepted(Network.allow(*named), conn)
