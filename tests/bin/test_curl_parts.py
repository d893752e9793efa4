"""The parts of curl and wget that need no server: URLs, globs, cookies, options, templates, links."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belljar.abi.limits import Limits
from belljar.bin._cookies import Jar, parse_set_cookie
from belljar.bin._httpauth import Credentials, digest, from_netrc
from belljar.bin._url import BadUrl, join, parse_url, remove_dots
from belljar.bin._web import name_from_header, parse_head
from belljar.bin.curl.glob import GlobError, expand
from belljar.bin.curl.options import escape
from belljar.bin.curl.writeout import Report, render
from belljar.bin.wget.gauge import duration, long_rate, short_rate, short_size
from belljar.bin.wget.names import links
from belljar.kernel.budget import Budget
from tests.adapter import new_session, run_command


@pytest.mark.parametrize(
    ("text", "shown", "asked"),
    [
        ("example.com", "http://example.com/", "http://example.com/"),
        ("HTTPS://Example.com:8443/a/../b?q#f", "https://Example.com:8443/b?q#f", "https://Example.com:8443/b?q"),
        ("http://u:p@h:80/x", "http://u:p@h:80/x", "http://h/x"),
        ("http://[::1]:8080/", "http://[::1]:8080/", "http://[::1]:8080/"),
        ("http://h?q=1", "http://h/?q=1", "http://h/?q=1"),
        ("http://h/\u00e4", "http://h/\u00e4", "http://h/%C3%A4"),
        ("http://b\u00fccher.example/", "http://xn--bcher-kva.example/", "http://xn--bcher-kva.example/"),
        ("http://h./", "http://h./", "http://h/"),
    ],
)
def test_urls(text: str, shown: str, asked: str) -> None:
    url = parse_url(text)
    assert str(url) == shown
    assert url.request_url() == asked


@pytest.mark.parametrize(
    "text",
    [
        "http://",
        "http://a b/",
        "http://h:99999/",
        "http://h:x/",
        "http://[1/",
        "http://a\\b/",
        "http://a%00b/",
        "http://good.test\uff0fx/",
        "http://a\uff20b/",
    ],
)
def test_what_is_no_url(text: str) -> None:
    with pytest.raises(BadUrl):
        parse_url(text)


@given(st.text(max_size=60))
def test_urls_never_crash_and_read_back(text: str) -> None:
    try:
        url = parse_url(text)
    except BadUrl:
        return
    if url.scheme in ("http", "https"):
        again = parse_url(url.request_url())
        assert (again.host.rstrip("."), again.port, again.path) == (
            url.host.rstrip("."),
            url.port,
            parse_url(url.request_url()).path,
        )


@given(st.text(alphabet="/.ab%2eE", max_size=40))
def test_dots_are_gone(path: str) -> None:
    parts = remove_dots("/" + path).replace("%2e", ".").replace("%2E", ".").split("/")
    assert "." not in parts
    assert ".." not in parts


@pytest.mark.parametrize(
    ("location", "to"),
    [
        ("/x", "http://h/x"), ("x", "http://h/a/x"), ("?q", "http://h/a/b?q"), ("//o/x", "http://o/x"), ("../../../x", "http://h/x"),
        ("https://o:8/y z", "https://o:8/y%20z"), ("#f", "http://h/a/b?old#f"), ("http:x", "http://h/a/http:x"), ("", "http://h/a/b?old"),
    ],
)  # fmt: skip
def test_redirects_are_joined(location: str, to: str) -> None:
    assert str(join(parse_url("http://h/a/b?old#frag"), location)) == to


def budget() -> Budget:
    return new_session(limits=Limits()).kernel.init.budget


def test_globs() -> None:
    spend = budget()
    assert [e.url for e in expand("h/[1-2]{a,b}", spend)] == ["h/1a", "h/1b", "h/2a", "h/2b"]
    assert [e.url for e in expand("[08-10]", spend)] == ["08", "09", "10"]
    assert [e.url for e in expand("[a-e:2]", spend)] == ["a", "c", "e"]
    assert [e.url for e in expand("http://[::1]/{x}", spend)] == ["http://[::1]/x"]
    assert next(iter(expand("{a,b}[1-9]", spend))).fill("f#2_#1_#3") == "f1_a_#3"
    for bad in ("{a", "a}", "[1-", "[3-1]", "{a{b}}", "[x]", "[1-5:0]", "{}"):
        with pytest.raises(GlobError):
            next(iter(expand(bad, spend)))


@given(st.text(alphabet="{}[],-:01ab\\", max_size=30))
def test_globs_never_crash(pattern: str) -> None:
    try:
        for _, _ in zip(range(50), expand(pattern, budget_once), strict=False):
            pass
    except GlobError:
        return


budget_once = budget()


def test_cookies() -> None:
    jar = Jar()
    url = parse_url("http://www.example.com/a/b")
    headers = ["s=1", "d=2; Domain=example.com; Path=/", "p=3; Path=/other", "x=4; Domain=evil.com", "t=5; Domain=com"]
    headers += ["sec=6; Secure", "old=7; Max-Age=0", "__Host-h=8; Path=/", "bad"]
    headers += ["e=9; Expires=Wed, 01 Jan 2020 00:00:00 GMT"]
    for header in headers:
        jar.receive(header, url, 1_700_000_000)
    assert jar.header(url, 1_700_000_000) == "s=1; d=2"
    assert jar.header(parse_url("http://www.example.com/other"), 1_700_000_000) == "p=3; d=2"
    assert jar.header(parse_url("http://sub.example.com/"), 1_700_000_000) == "d=2"
    assert jar.header(parse_url("http://notexample.com/"), 1_700_000_000) == ""
    again = Jar()
    again.load(jar.render(), 1_700_000_000, keep_session=True)
    assert again.header(parse_url("http://sub.example.com/"), 1_700_000_000) == "d=2"
    again = Jar()
    again.load(jar.render(), 1_700_000_000, keep_session=False)
    assert len(again) == 0


@given(st.text(max_size=80))
def test_any_cookie_is_read_or_left(header: str) -> None:
    cookie = parse_set_cookie(header, parse_url("http://h.example/"), 0)
    if cookie is not None:
        jar = Jar()
        jar.put(cookie, 0)
        assert len(jar.render().splitlines()) <= 5 or "\n" not in header


def test_digest_as_in_the_rfc() -> None:
    """RFC 7616, 3.9.1, with its client nonce."""
    challenge = (
        'realm="http-auth@example.org", qop="auth, auth-int", algorithm=SHA-256, '
        'nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"'
    )
    answer = digest(
        Credentials("Mufasa", "Circle of Life"), challenge, "GET", "/dir/index.html", lambda count: b"\0" * count
    )
    assert answer is not None
    assert answer.startswith('Digest username="Mufasa", realm="http-auth@example.org", nonce="7ypf')
    assert "qop=auth" in answer
    assert digest(Credentials("a", "b"), 'realm="x"', "GET", "/", bytes) is None
    assert digest(Credentials("a", "b"), 'nonce="x", algorithm=ROT13', "GET", "/", bytes) is None


def test_netrc() -> None:
    text = "machine a.example login me password pw\nmachine b.example\n  login you\n  password no\n"
    text += "default login any password x\n"
    assert from_netrc(text, "a.example", None) == Credentials("me", "pw")
    assert from_netrc(text, "b.example", "you") == Credentials("you", "no")
    assert from_netrc(text, "c.example", None) == Credentials("any", "x")
    assert from_netrc("machine a.example login me password pw", "z", None) is None


def test_heads_and_names() -> None:
    head = parse_head(b"HTTP/1.1 404 Not Found\r\nA: 1\r\na: 2\r\n\r\n")
    assert (head.status, head.reason, head.version, head.all("A"), head.get("a")) == (
        404,
        "Not Found",
        "1.1",
        ["1", "2"],
        "2",
    )
    assert parse_head(b"").status == 0
    assert name_from_header('attachment; filename="../../etc/passwd"') == "passwd"
    assert name_from_header("attachment; filename=a.txt; x=y") == "a.txt"
    assert name_from_header('attachment; filename=".."') is None
    assert name_from_header('inline; filename="..\\\\..\\\\x.exe"') == "x.exe"
    assert name_from_header(None) is None


def test_templates() -> None:
    report = Report("http://h/x", 0, parse_url("http://h/x"), parse_url("http://h/x"))
    said: list[str] = []
    pieces = render("%{http_code} %{url.host}%%\\n\\q%{nope}%{stderr}e%output{f}g", report, "v", said.append)
    text = {where: "".join(p.text for p in pieces if p.where == where) for where in ("stdout", "stderr", "file:f")}
    assert text == {"stdout": "000 h%\n\\q", "stderr": "e", "file:f": "g"}
    assert said == ["unknown --write-out variable: 'nope'"]


@given(st.text(max_size=60))
def test_templates_never_crash(template: str) -> None:
    render(template, Report("x", 0), "v", lambda text: None)


@given(st.binary(max_size=40))
def test_escaping_keeps_every_byte(data: bytes) -> None:
    from urllib.parse import unquote_to_bytes

    assert unquote_to_bytes(escape(data).replace("+", "%20")) == data


def test_links_of_a_page() -> None:
    page = '<base href="/d/"><a href=x>1</a><A HREF="x#y">2</A><img src="/i.png"><a href="mailto:a@b">m</a><a href="http://o/">o</a>'
    found = [str(url) for url in links(page, parse_url("http://h/a/b.html"))]
    assert found == ["http://h/d/x", "http://h/i.png", "http://o/"]
    assert [str(url) for url in links(page, parse_url("http://h/"), requisites_only=True)] == ["http://h/i.png"]


def test_gauge_figures() -> None:
    assert (short_rate(914 * 1024, 1), long_rate(914 * 1024, 1)) == ("914K", "914 KB/s")
    assert (short_rate(int(1.5 * 2**20), 1), long_rate(500, 1)) == ("1.50M", "500 B/s")
    assert (short_size(100_000), short_size(5000)) == ("98K", "4.9K")
    assert (duration(0.0001), duration(0.0123), duration(2.345), duration(75)) == ("0", "0.012", "2.3", "75")


WORDS = """-s -o -K -w -d -F -H -u --next -: --json @/no - a=b --no-silent --retry 1k -x -O -I -T --url
file:///etc/hostname --help -C --proto =x http://x.test/[1-2] -f -L -b -c -D""".split()


@given(st.lists(st.sampled_from(WORDS), max_size=8))
def test_no_command_line_crashes(args: list[str]) -> None:
    result = run_command(session, ["curl", *args], cwd="/tmp")
    assert b"Traceback" not in result.stderr
    assert 0 <= result.status < 128


session = new_session({"HOME": "/tmp"})
