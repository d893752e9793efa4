"""What a program finds on its global object: timers, URLs, text, bytes, events, streams, crypto, fetch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from belljar import Network, Sandbox, safe_fetch
from belljar.api.js import JsInterpreter
from belljar.api.prefix import Prefix
from tests.net.servers import HttpServer, Response

CASES = {
    "new URL('../b?x=1#h', 'https://u:p@example.com:8080/a/c').href": "https://u:p@example.com:8080/b?x=1#h",
    "(() => { const u = new URL('http://a/'); u.host = 'b:9'; u.pathname = '/x y'; u.hash = 'z'; return u.href })()": (
        "http://b:9/x%20y#z"
    ),
    "new URL('http://m\\u00fcnchen.de').hostname": "xn--mnchen-3ya.de",
    "caught(() => new URL('nope')).code": "ERR_INVALID_URL",
    "URL.canParse('http://x') && !URL.canParse('x')": True,
    "[...new URLSearchParams('a=1&b=%20&a=2').entries()].join('|')": "a,1|b, |a,2",
    "new URLSearchParams({ q: 'a b&c' }).toString()": "q=a+b%26c",
    "[...new TextEncoder().encode('h\\u00e9')].join()": "104,195,169",
    "new TextDecoder().decode(new Uint8Array([0xef, 0xbb, 0xbf, 104, 0xff]))": "h\ufffd",
    "caught(() => new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array([255]))).name": "TypeError",
    "new TextDecoder('latin1').decode(new Uint8Array([0xe9]))": "é",
    "[btoa('hi\\xff'), atob('aGk='), atob(' aGk ')]": ["aGn/", "hi", "hi"],
    "caught(() => atob('*')).name": "InvalidCharacterError",
    "structuredClone({ d: new Date(0), m: new Map([[1, new Set([2])]]), e: [/x/g] }).m.get(1).has(2)": True,
    "caught(() => structuredClone(() => 1)).name": "DataCloneError",
    "(() => { const b = new ArrayBuffer(4); structuredClone(b, { transfer: [b] }); return b.detached })()": True,
    "(await new Promise((r) => { const c = new AbortController(); c.signal.onabort = r; c.abort() })).type": "abort",
    "AbortSignal.abort('why').reason": "why",
    "await new Promise((r) => AbortSignal.timeout(5).addEventListener('abort', (e) => r(e.target.reason.name)))": (
        "TimeoutError"
    ),
    "new (class extends EventTarget {})().dispatchEvent(new Event('x'))": True,
    "(await new Blob(['a', 'b']).stream().getReader().read()).value.length": 2,
    "await new Blob(['caf\\u00e9']).text()": "café",
    "await new Response(new ReadableStream({ start(c) { c.enqueue(new Uint8Array([65])); c.close() } })).text()": "A",
    "await new Promise((r) => { const o = []; setTimeout(() => r(o.join()), 300); setTimeout(() => o.push(2), 3);"
    " queueMicrotask(() => o.push(1)); clearTimeout(setTimeout(() => o.push(9), 1)) })": "1,2",
    "await new Promise((r) => { let n = 0; const t = setInterval(() => ++n == 3 && r(clearInterval(t) ?? n), 1) })": 3,
    "[...new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode('abc')))].slice(0, 3).join()": (
        "186,120,22"
    ),
    "/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(crypto.randomUUID())": True,
    "typeof performance.now() + (performance.timeOrigin > 1.7e12)": "numbertrue",
    "new Headers([['A', '1'], ['a', '2']]).get('a')": "1, 2",
    "(await new Request('http://x/', { method: 'POST', body: '{\"a\":1}' }).json()).a": 1,
    "Object.keys(globalThis).includes('fetch') && typeof Buffer": "undefined",
}  # fmt: skip


@pytest.mark.parametrize("code", CASES)
def test_values(prefix: Prefix, code: str) -> None:
    result = prefix.run(f"const caught = (f) => {{ try {{ f() }} catch (e) {{ return e }} }}; export default {code}")
    assert result.ok, result.error
    assert result.value == CASES[code]


def test_a_timeout_signal_keeps_no_run_waiting(prefix: Prefix) -> None:
    result = prefix.run("AbortSignal.timeout(60000); export default 1")
    assert result.value == 1
    assert result.duration_ms < 30_000


def test_console_prints_as_node_does(prefix: Prefix) -> None:
    code = """
    console.log('%s is %d %o', 'x', 4.5, [1]); console.info({ a: { b: { c: { d: 1 } } }, f() {}, s: Symbol('q') });
    console.error(new Map([['k', new Set([1n])]])); console.warn('w'); console.table([{ a: 1 }]);
    console.group('g'); console.log('in'); console.groupEnd(); console.assert(0, 'no');
    console.count(); console.dir([null]);
    """
    result = prefix.run(code)
    assert result.stdout == (
        "x is 4.5 [ 1, [length]: 1 ]\n{ a: { b: { c: [Object] } }, f: [Function: f], s: Symbol(q) }\n"
        "┌─────────┬───┐\n│ (index) │ a │\n├─────────┼───┤\n│ 0       │ 1 │\n└─────────┴───┘\n"
        "g\n  in\ndefault: 1\n[ null ]\n"
    )
    assert result.stderr == "Map(1) { 'k' => Set(1) { 1n } }\nw\nAssertion failed: no\n"


def test_fetch_is_refused_while_there_is_no_network(prefix: Prefix) -> None:
    result = prefix.run("await fetch('https://example.com')")
    assert result.error is not None
    assert (result.error.name, result.error.message) == ("TypeError", "fetch failed")
    told = prefix.run("export default await fetch('https://example.com').catch((e) => e.cause.message)")
    assert told.value == "there is no network here: the host has granted none"


@pytest.fixture
def server() -> Iterator[HttpServer]:
    close = {"Connection": "close"}
    routes: dict[str, Any] = {
        "/json": Response(200, b'{"n": [1, 2]}', {"Content-Type": "application/json", "X-Y": "z", **close}),
        "/echo": lambda request: Response(200, request.method.encode() + b" " + request.body, close),
        "/moved": Response(302, b"", {"Location": "/json", **close}),
        "/404": Response(404, b"no", close),
        "/bytes": Response(200, b"\0\xff", close),
    }
    with HttpServer(routes) as made:
        yield made


def test_fetch_goes_to_the_hosts_policy(js: JsInterpreter, server: HttpServer) -> None:
    fetch = safe_fetch(Network.allow(server.authority))
    with js.precompile(f"globalThis.base = 'http://{server.authority}'", globals={"fetch": fetch}) as prefix:
        code = """
        const r = await fetch(base + '/json');
        const e = await fetch(base + '/404');
        const b = new Uint8Array(await (await fetch(new URL('/bytes', base))).arrayBuffer());
        const p = await (await fetch(base + '/echo', { method: 'POST', headers: { 'x-a': 'b' }, body: 'sent' })).text();
        const m = await fetch(base + '/moved');
        const denied = await fetch('http://127.0.0.1:1/').catch((e) => [e.name, e.message]);
        const gone = await fetch(base, { signal: AbortSignal.abort() }).catch((e) => e.name);
        export default [r.ok, r.status, r.headers.get('x-y'), await r.json(), e.ok, b, p, await m.json(), denied, gone];
        """
        result = prefix.run(code)
        assert result.ok, result.error
        ok, status, header, parsed, missing, data, posted, moved, denied, gone = result.value
        assert (ok, status, header, parsed, missing) == (True, 200, "z", {"n": [1, 2]}, False)
        assert (data, moved, gone) == (b"\0\xff", {"n": [1, 2]}, "AbortError")
        assert posted == "POST sent"
        assert denied[0] == "TypeError"
        assert "denied" in denied[1]


def test_a_sandboxs_network_is_its_javascripts(server: HttpServer, engine: str) -> None:
    with Sandbox(network=Network.allow(server.authority)) as sandbox:
        url = f"http://{server.authority}/json"
        assert sandbox.js.run(f"(await (await fetch('{url}')).json()).n").value == [1, 2]
        assert sandbox.js.precompile().run(f"export default (await fetch('{url}')).status").value == 200
        assert sandbox.js.run("await fetch('http://127.0.0.1:1/').catch((e) => e.name)").value == "TypeError"


def test_a_host_fetch_of_another_kind_gives_what_it_gives(js: JsInterpreter) -> None:
    with js.precompile(globals={"fetch": lambda url, options: [url, options["method"]]}) as prefix:
        assert prefix.run("export default await fetch('http://a/b')").value == ["http://a/b", "GET"]
