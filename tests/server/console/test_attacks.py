"""Hostile sites, hostile neighbours and hostile guests against the console's server side."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.server.console.client import API, OURS, Page
from tests.server.serving import Server

EVIL = "http://evil.example"


@pytest.fixture(scope="module")
def stranger(served: Server) -> Page:
    """Another tenant, signed in."""
    return Page(served, served.new_key("stranger"))


def policy(answer: httpx.Response) -> dict[str, str]:
    parts = [part.strip().partition(" ") for part in answer.headers["content-security-policy"].split(";")]
    return {name: rest for name, _, rest in parts}


# Requests that another site has the browser send (CSRF).

CHANGES = [
    ("POST", "/sandboxes"),
    ("DELETE", "/sandboxes/{id}"),
    ("POST", "/sandboxes/{id}/pause"),
    ("POST", "/sandboxes/{id}/file?path=/tmp/planted"),
    ("POST", "/sandboxes/{id}/run"),
    ("PUT", "/sandboxes/{id}/network"),
    ("POST", "/keys"),
    ("DELETE", "/session"),
    ("POST", "/session"),
]


@pytest.mark.parametrize(("method", "path"), CHANGES)
def test_a_form_of_another_site_changes_nothing(page: Page, sandbox: str, method: str, path: str) -> None:
    """Even where a browser sends the cookie: the page's own header is missing."""
    headers = {"Cookie": page.cookie, "Content-Type": "text/plain"}
    answer = httpx.request(
        method, page.server.url + API + path.format(id=sandbox), headers=headers, content=b"{}", timeout=30
    )
    assert answer.status_code == 403
    assert page.get(f"/sandboxes/{sandbox}")["state"] == "running"


@pytest.mark.parametrize("origin", [EVIL, "null", "http://127.0.0.1:1", "http://127.0.0.1", "file://", ""])
def test_a_script_of_another_origin_changes_nothing(page: Page, sandbox: str, origin: str) -> None:
    headers = {**OURS, "Cookie": page.cookie, "Origin": origin}
    answer = httpx.delete(f"{page.server.url}{API}/sandboxes/{sandbox}", headers=headers, timeout=30)
    assert answer.status_code == 403
    assert page.get(f"/sandboxes/{sandbox}")["state"] == "running"


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_site_reads_nothing(page: Page, sandbox: str, site: str) -> None:
    headers = {"Cookie": page.cookie, "Sec-Fetch-Site": site}
    for path in ("/sandboxes", f"/sandboxes/{sandbox}/file?path=/etc/passwd", "/keys", "/session"):
        assert httpx.get(page.server.url + API + path, headers=headers, timeout=30).status_code == 403


def test_no_answer_allows_another_origin(page: Page) -> None:
    asked = {
        "Origin": EVIL,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "x-belljar-console",
    }
    answer = httpx.options(f"{page.server.url}{API}/sandboxes", headers=asked)
    assert answer.status_code in (403, 405)
    assert "access-control-allow-origin" not in answer.headers


# The session.


def test_the_cookie_is_out_of_reach(served: Server) -> None:
    answer = httpx.post(f"{served.url}{API}/session", json={"key": served.key}, headers=OURS, timeout=30)
    (cookie,) = answer.headers.get_list("set-cookie")
    name, *attributes = [part.strip() for part in cookie.split(";")]
    assert {"HttpOnly", "SameSite=strict", "Path=/console"} <= set(attributes)
    assert not any(part.lower().startswith("domain") for part in attributes)
    assert re.fullmatch(r"belljar-[0-9a-f]{8}=[\w-]{43}", name)


def test_a_session_that_was_planted_is_not_taken_over(served: Server) -> None:
    """Session fixation: the token after signing in is a new one, and the old one is worth nothing."""
    planted = Page(served)
    answer = httpx.post(
        f"{served.url}{API}/session", json={"key": served.key}, headers={**OURS, "Cookie": planted.cookie}, timeout=30
    )
    fresh = answer.headers["set-cookie"].partition(";")[0]
    assert fresh != planted.cookie
    assert httpx.get(f"{served.url}{API}/sandboxes", headers={"Cookie": planted.cookie}, timeout=30).status_code == 401
    assert httpx.get(f"{served.url}{API}/sandboxes", headers={"Cookie": fresh}, timeout=30).status_code == 200


def test_of_two_cookies_none_is_taken(page: Page, stranger: Page) -> None:
    """A neighbour on another port of this machine can add a cookie of its own."""
    for cookie in (f"{stranger.cookie}; {page.cookie}", f"{page.cookie}; {stranger.cookie}"):
        answer = httpx.get(f"{page.server.url}{API}/sandboxes", headers={"Cookie": cookie}, timeout=30)
        assert answer.status_code == 401


@pytest.mark.parametrize("value", ["", "x" * 43, "'; DROP TABLE session; --", "../../etc/passwd", "%00", "x" * 9000])
def test_a_made_up_session_is_none(page: Page, value: str) -> None:
    name = page.cookie.partition("=")[0]
    answer = httpx.get(f"{page.server.url}{API}/sandboxes", headers={"Cookie": f"{name}={value}"}, timeout=30)
    assert answer.status_code == 401


def test_a_key_is_no_session_and_a_session_no_key(page: Page) -> None:
    url = page.server.url
    assert httpx.get(f"{url}{API}/sandboxes", headers={"X-API-KEY": page.server.key}, timeout=30).status_code == 401
    assert httpx.get(f"{url}/v2/sandboxes", headers={"Cookie": page.cookie}, timeout=30).status_code == 401
    token = page.cookie.partition("=")[2]
    assert httpx.get(f"{url}/v2/sandboxes", headers={"X-API-KEY": token}, timeout=30).status_code == 401


def test_guessing_keys_is_slowed_down(own: Server) -> None:
    def guess(body: dict[str, str]) -> int:
        return httpx.post(f"{own.url}{API}/session", json=body, headers=OURS, timeout=30).status_code

    answers = [guess({"key": f"bj_{number:042d}"}) for number in range(20)]
    answers += [guess({"token": f"{number:043d}"}) for number in range(15)]
    assert answers[:20] == [401] * 20
    assert answers[-1] == 429
    assert Page(own).get("/keys")  # whoever has the same address is not locked out


def test_a_link_is_for_an_operator_and_not_in_a_services_log(own: Server) -> None:
    assert "#sign-in=" in "".join(own.said)  # the first start prints the key, too
    own.stop()
    own.start()
    assert "#sign-in=" not in "".join(own.said)
    assert not any("sign-in" in line or own.key in line for line in own.logged)


# Other tenants.

OTHERS = [
    ("GET", ""), ("DELETE", ""), ("POST", "/pause"), ("POST", "/resume"), ("POST", "/timeout"), ("POST", "/fork"),
    ("POST", "/snapshots"), ("PUT", "/network"), ("GET", "/network"), ("GET", "/samples"), ("GET", "/processes"),
    ("POST", "/processes/1/signal"), ("GET", "/entries?path=/"), ("GET", "/file?path=/etc/passwd"),
    ("POST", "/file?path=/tmp/x"), ("DELETE", "/file?path=/tmp"), ("POST", "/directory?path=/tmp/d"),
    ("POST", "/rename"), ("GET", "/changes"), ("GET", "/before?path=/etc/passwd"), ("POST", "/run"),
    ("POST", "/contexts/default-python/restart"), ("POST", "/ports/8000"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path"), OTHERS)
def test_another_tenants_sandbox_is_one_that_never_was(
    page: Page, stranger: Page, sandbox: str, method: str, path: str
) -> None:
    theirs = stranger.ask(method, f"/sandboxes/{sandbox}{path}", {})
    nobodys = stranger.ask(method, f"/sandboxes/i{'0' * 24}{path}", {})
    assert theirs.status_code == nobodys.status_code == 404
    assert theirs.text.replace(sandbox, "") == nobodys.text.replace(f"i{'0' * 24}", "")
    assert page.get(f"/sandboxes/{sandbox}")["state"] == "running"


def test_another_tenants_lists_are_their_own(page: Page, stranger: Page, sandbox: str) -> None:
    name = f"mine-{time.monotonic_ns()}"
    kept = page.ask("POST", f"/sandboxes/{sandbox}/snapshots", {"name": name}).json()["snapshotID"]
    for path in ("/sandboxes", "/snapshots", "/images", "/keys", "/usage", "/audit"):
        shown = stranger.ask("GET", path).text
        for word in (sandbox, kept, name, "default", page.server.key[3:13]):
            assert word not in shown, path
    assert stranger.ask("DELETE", f"/snapshots/{kept}").status_code == 404
    assert stranger.ask("DELETE", f"/keys/{page.server.key[3:13]}").status_code == 404
    assert stranger.ask("POST", "/sandboxes", {"templateID": kept}).status_code == 404


# The terminal's WebSocket.


def open_terminal(page: Page, number: str, **headers: str) -> int:
    """The HTTP status of an attempt; 101 if it was let in."""
    url = f"{page.server.url.replace('http', 'ws', 1)}{API}/sandboxes/{number}/terminal"
    try:
        with connect(url, additional_headers=headers, origin=None, proxy=None, open_timeout=60):
            return 101
    except InvalidStatus as refused:
        return refused.response.status_code


@pytest.mark.parametrize("origin", [EVIL, "null", "http://127.0.0.1:1", None])
def test_a_cross_site_websocket_is_refused(page: Page, sandbox: str, origin: str | None) -> None:
    headers = {"Cookie": page.cookie} if origin is None else {"Cookie": page.cookie, "Origin": origin}
    assert open_terminal(page, sandbox, **headers) == 403


def test_a_websocket_needs_a_session_of_the_right_tenant(page: Page, stranger: Page, sandbox: str) -> None:
    url = page.server.url
    assert open_terminal(page, sandbox, Origin=url) == 403
    assert open_terminal(page, sandbox, Origin=url, Cookie=stranger.cookie) == 403
    assert open_terminal(page, f"i{'0' * 24}", Origin=url, Cookie=page.cookie) == 403
    assert open_terminal(page, sandbox, Origin=url, Cookie=page.cookie) == 101


def test_a_key_that_only_reads_opens_no_shell_and_runs_nothing(page: Page, sandbox: str) -> None:
    reader = Page(page.server, page.server.new_key("default", "--read-only"))
    assert reader.get(f"/sandboxes/{sandbox}")["state"] == "running"
    assert open_terminal(page, sandbox, Origin=page.server.url, Cookie=reader.cookie) == 403
    for method, path in (("POST", "/run"), ("POST", "/file?path=/tmp/x"), ("DELETE", ""), ("POST", "/pause")):
        assert reader.ask(method, f"/sandboxes/{sandbox}{path}", {}).status_code == 403
    assert reader.ask("POST", "/keys", {}).status_code == 403


def test_another_sandboxs_terminal_is_not_reached_by_its_id(page: Page, sandbox: str) -> None:
    first = page.terminal(sandbox)
    first.type("echo sec''ret\n")
    first.until("secret")
    other = page.create()
    second = page.terminal(other, terminal=first.hello["terminal"])
    assert second.hello["terminal"] != first.hello["terminal"]
    second.type("echo en''d\n")
    assert "secret" not in second.until("end")
    first.close()
    second.close()


@pytest.mark.parametrize("text", ["{", "[]", '{"size": "x"}', '{"shown": "x"}', '{"size": [1]}', "\x00"])
def test_a_message_that_makes_no_sense_ends_the_connection_only(page: Page, sandbox: str, text: str) -> None:
    first = page.terminal(sandbox)
    first.socket.send(text)
    with pytest.raises(Exception, match="1008"):
        first.until("never shown", 20)
    again = page.terminal(sandbox, terminal=first.hello["terminal"])
    assert again.hello["terminal"] == first.hello["terminal"]
    again.close()


def test_an_acknowledgement_of_what_was_not_sent_counts_for_nothing(page: Page, sandbox: str) -> None:
    terminal = page.terminal(sandbox)
    terminal.say(shown=1 << 60)
    terminal.say(shown=-(1 << 60))
    terminal.type("echo fi''ne\n")
    terminal.until("fine")
    terminal.close()


# What browsers are told.


def test_the_page_can_be_framed_by_nobody(served: Server) -> None:
    answer = httpx.get(served.url, timeout=30)
    assert answer.headers["x-frame-options"] == "DENY"
    assert policy(answer)["frame-ancestors"] == "'none'"
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"


def test_the_policy_lets_in_only_what_the_page_brings(served: Server) -> None:
    first, second = httpx.get(served.url, timeout=30), httpx.get(served.url, timeout=30)
    rules = policy(first)
    assert rules["default-src"] == "'none'"
    nonce = re.findall(r"'nonce-([\w-]+)'", rules["script-src"])[0]
    assert rules["script-src"] == f"'nonce-{nonce}' 'strict-dynamic'"
    assert rules["connect-src"] == "'self'"
    assert rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["require-trusted-types-for"] == "'script'"
    assert not any("unsafe" in rule or "*" in rule or "http" in rule for rule in rules.values())
    assert nonce not in second.headers["content-security-policy"]
    assert nonce not in second.text


def test_answers_are_nothing_a_browser_runs_or_keeps(page: Page, sandbox: str) -> None:
    page.write(sandbox, "/tmp/page.html", b"<script>alert(1)</script>")
    for path in ("/sandboxes", f"/sandboxes/{sandbox}/file?path=/tmp/page.html", f"/sandboxes/{sandbox}/network"):
        answer = page.ask("GET", path)
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert policy(answer)["sandbox"] == ""
        assert not answer.headers["content-type"].startswith(("text/html", "image/svg"))
    got = page.ask("GET", f"/sandboxes/{sandbox}/file?path=/tmp/page.html")
    assert got.headers["content-disposition"].startswith("attachment")


# Paths.


@pytest.mark.parametrize(
    "path",
    [
        "../index.html", "..%2f..%2faccess.py", "%2e%2e/%2e%2e/api.py", "index.html", ".made-of", "..", "",
        "....//api.py", "/etc/passwd", "%2fetc%2fpasswd", "console.js%00.css", "\\..\\api.py", "__init__.py",
    ],
)  # fmt: skip
def test_assets_are_the_pages_files_and_no_others(served: Server, path: str) -> None:
    """Sent as they are: a client would tidy them up."""
    with socket.create_connection(("127.0.0.1", served.port), 30) as stream:
        stream.sendall(f"GET /console/assets/{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        answer = b"".join(iter(lambda: stream.recv(65536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert not head.startswith(b"HTTP/1.1 200")
    assert b"import" not in body
    assert b"root:" not in body


@pytest.mark.parametrize(
    "path", ["/../../etc/shadow", "..", "../../../etc", "~root", "/proc/self/root", "a\nb", "/" * 5000]
)
def test_paths_stay_inside_the_sandbox(page: Page, sandbox: str, path: str) -> None:
    here = os.listdir("/")
    answer = page.client.get(f"{API}/sandboxes/{sandbox}/entries", params={"path": path})
    assert answer.status_code in (200, 400, 403, 404, 414)
    shown = {each["name"] for each in answer.json().get("entries", [])}
    assert not shown & {"work", "boot", "init.sh"} & set(here)


@pytest.mark.parametrize("name", ["..", "../x", "x/../../y", "%2e%2e", "i0/../../keys", "i0%2f..%2fkeys"])
def test_ids_are_no_paths(page: Page, name: str) -> None:
    answer = page.client.get(f"{API}/sandboxes/{name}/network")
    assert answer.status_code in (400, 404, 405)


# Text of guests.


def test_names_that_are_no_text_are_shown_and_harm_nothing(page: Page, sandbox: str) -> None:
    terminal = page.terminal(sandbox)
    terminal.type(
        "mkdir -p /tmp/odd && cd /tmp/odd && touch $'\\xff\\xfe' $'a\\nb' $'\\e[31m' '<img src=x>' && echo re''ady\n"
    )
    terminal.until("ready")
    terminal.close()
    entries = page.get(f"/sandboxes/{sandbox}/entries", path="/tmp/odd")["entries"]
    assert {(each["name"], each["shown"]) for each in entries} == {
        (None, "\\udcff\\udcfe"),
        ("a\nb", "a\\nb"),
        ("\x1b[31m", "\\x1b[31m"),
        ("<img src=x>", "<img src=x>"),
    }
    assert page.ask("GET", f"/sandboxes/{sandbox}/file", params={"path": "/tmp/odd/a\nb"}).status_code == 200


def test_a_name_of_a_download_breaks_no_header(page: Page, sandbox: str) -> None:
    name = '/tmp/a"\r\nSet-Cookie: x=y; <é>'
    assert page.write(sandbox, name, b"x").status_code == 200
    answer = page.ask("GET", f"/sandboxes/{sandbox}/file", params={"path": name})
    assert answer.status_code == 200
    assert "set-cookie" not in answer.headers
    expected = "attachment; filename*=utf-8''a%22%0D%0ASet-Cookie%3A%20x%3Dy%3B%20%3C%C3%A9%3E"
    assert answer.headers["content-disposition"] == expected


@pytest.mark.parametrize(
    "body",
    [
        b"{" * 100_000,
        b'{"key": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
        b'"' + b"x" * (2 << 20) + b'"',
        b'{"key": "\xff"}',
        b'{"key": 1e999}',
    ],
)
def test_bombs_in_a_sign_in_are_refused(served: Server, body: bytes) -> None:
    answer = httpx.post(f"{served.url}{API}/session", content=body, headers=OURS, timeout=30)
    assert answer.status_code in (400, 401, 413)
    assert "Traceback" not in answer.text


@pytest.fixture(scope="module", autouse=True)
def _nothing_failed(served: Server) -> Iterator[None]:
    """No attack leads to an error of ours in the log."""
    yield
    assert [line for line in served.logged if '"error"' in line or "Traceback" in line] == []


def test_a_keys_name_is_plain_text(page: Page) -> None:
    for name in ("x" * 101, "a\nb", "\x1b[31m", "\u202e"):
        assert page.ask("POST", "/keys", {"name": name}).status_code == 400
    odd: Any = "<script>"
    assert page.ask("POST", "/keys", {"name": odd}).status_code == 201
