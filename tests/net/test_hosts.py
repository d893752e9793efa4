"""Hosts and URLs: one reading or none, whatever spelling a guest tries."""

from __future__ import annotations

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belljar.net.hosts import BadHost, join_url, parse_host, parse_name, parse_url

# Each of these is an address to some resolver.
ODD_ADDRESSES = """
2852039166 0xa9fea9fe 0251.0376.0251.0376 169.254.43518 127.1 0 0x7f.1 127.0.0.01 0127.0.0.1 1.2.3 256.1.1.1 1.2.3.4.5
\u2460\u2461\u2466.0.0.1 \uff11\uff12\uff17.0.0.1 127\u30020\u30020\u30021 \u0661.0.0.1
0x7f.0x0.0x0.0x1 127.0.0.1.. .127.0.0.1
fe80::1%eth0 [fe80::1%25eth0] ::ffff:127.1 [::1 ::1] 1:2:3:4:5:6:7:8:9 ::g
""".split()


@pytest.mark.parametrize("text", ODD_ADDRESSES)
def test_odd_spellings_of_addresses_are_refused(text: str) -> None:
    with pytest.raises(BadHost):
        parse_host(text)
    with pytest.raises(BadHost):
        parse_url(f"http://{text}/")


@pytest.mark.parametrize(
    ("text", "address"),
    [("127.0.0.1", "127.0.0.1"), ("[::1]", "::1"), ("::ffff:10.0.0.1", "10.0.0.1"), ("[::FFFF:a00:1]", "10.0.0.1")],
)
def test_plain_addresses(text: str, address: str) -> None:
    assert parse_host(text) == ip_address(address)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "..",
        "a..b",
        "-a.com",
        "a-.com",
        "a" * 64 + ".com",
        "a b",
        "a\x00b",
        "good.com%00.evil.com",
        "x" * 254,
        "b\u00fccher.de",
        "a/b",
        "a\\b",
        "a@b",
        "*",
    ],
)
def test_names_that_are_none(text: str) -> None:
    with pytest.raises(BadHost):
        parse_name(text)


def test_names_have_one_spelling() -> None:
    assert parse_name("GOOD.Com.") == "good.com"
    assert parse_name("xn--bcher-kva.de") == "xn--bcher-kva.de"


@pytest.mark.parametrize(
    "url",
    [
        "http://good.com@evil.com/",
        "http://user:pw@good.com/",
        "ftp://good.com/",
        "file:///etc/passwd",
        "//good.com",
        "good.com",
        "http:///x",
        "http://good.com\\@evil.com/",
        "http://good.com:0/",
        "http://good.com:99999/",
        "http://good.com:80a/",
        "http://good.com/a b",
        "http://good.com/\u2603",
        "http://good.com/\r\nHost: evil",
        "http://[::1",
        "http://::1/",
        "javascript://good.com/",
        "http://good.com:80:80/",
        "gopher://x/",
        "http://good.com\t/",
    ],
)
def test_urls_that_mean_two_things_are_refused(url: str) -> None:
    with pytest.raises(BadHost):
        parse_url(url)


def test_a_url_and_its_parts() -> None:
    url = parse_url("HTTPS://API.Example.com:8443/a/%2e%2e/b?q=1#part")
    assert (url.scheme, url.host, url.port, url.target) == ("https", "api.example.com", 8443, "/a/%2e%2e/b?q=1")
    assert url.authority == "api.example.com:8443"
    assert str(parse_url("http://x.org")) == "http://x.org/"
    assert parse_url("http://x.org:80/").authority == "x.org"
    assert parse_url("http://x.org?a").target == "/?a"
    assert str(parse_url("http://[::1]:8080/x")) == "http://[::1]:8080/x"


@pytest.mark.parametrize(
    ("location", "leads_to"),
    [
        ("/b", "https://a.org/b"),
        ("b", "https://a.org/x/b"),
        ("../b?c", "https://a.org/b?c"),
        ("?z", "https://a.org/x/y?z"),
        ("//b.org/", "https://b.org/"),
        ("http://b.org", "http://b.org/"),
        ("", "https://a.org/x/y?q"),
        ("a?x=../..", "https://a.org/x/a?x=../.."),
    ],
)
def test_where_a_redirect_leads(location: str, leads_to: str) -> None:
    assert str(join_url(parse_url("https://a.org/x/y?q"), location)) == leads_to


@pytest.mark.parametrize(
    "location", ["file:///etc/passwd", "javascript:1", "http://u@b/", "http://127.1/", "a b", "ftp://b/"]
)
def test_redirects_elsewhere_are_refused(location: str) -> None:
    with pytest.raises(BadHost):
        join_url(parse_url("https://a.org/"), location)


@given(st.text(max_size=60))
def test_a_url_that_parses_prints_to_itself(text: str) -> None:
    try:
        url = parse_url(f"http://{text}")
    except BadHost:
        return
    assert parse_url(str(url)) == url
    assert "@" not in url.authority
    assert str(url).isascii()
