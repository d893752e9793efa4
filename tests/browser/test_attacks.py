"""What guest code tries against the page it runs in: nothing of the page, its origin or the network is reached."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, ClassVar

import pytest
from wasmtime import wat2wasm

from belljar.browser.serve_host import ENGINE_POLICY, WORKER_POLICY, Handler, headers
from tests.browser.attacks import ASK_PROBE, ATTACKS, CPU_BOMBS, JS_ATTACKS, MEMORY_BOMBS, PROBE, WASM_ATTACKS
from tests.browser.page import built_page

pytestmark = pytest.mark.slow
SECONDS = 600
WHOLE = bool(os.environ.get("BELLJAR_WHOLE"))


def part(names: Iterable[str], share: int) -> list[str]:
    """All of them, or one of so many."""
    return [name for number, name in enumerate(names) if WHOLE or number % share == 0]


class Logging(BaseHTTPRequestHandler):
    """A server that lets every origin in, and notes who came."""

    seen: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.seen.append(self.path)
        self.send_response(200)
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Content-Type", "text/javascript")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Logging) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    from tests.chromium import ARGUMENTS, chromium

    directory = built_page()
    scripts = tmp_path_factory.mktemp("probes")
    for name in ("engine_probe.mjs", "worker.mjs", "control_probe.mjs"):
        (scripts / name).write_text(PROBE)

    class Probed(Handler):
        """The page, and beside it the probe: under the policy of an engine, of a sandbox's worker, and of the page."""

        def translate_path(self, path: str) -> str:
            name = path.removeprefix("/probes/")
            return str(scripts / name) if path.startswith("/probes/") else super().translate_path(path)

    with (
        ThreadingHTTPServer(("127.0.0.1", 0), lambda *given: Probed(*given, directory=str(directory))) as server,
        sync_playwright() as playwright,
    ):
        Thread(target=server.serve_forever, daemon=True).start()
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(ARGUMENTS))
        page = browser.new_page()
        page.set_default_timeout(SECONDS * 1000)
        page.goto(f"http://localhost:{server.server_port}/package.json")
        page.evaluate(
            """async () => {
                const { Sandbox } = await import("/belljar.mjs");
                document.cookie = "secret=canary";
                localStorage.secret = "canary";
                globalThis.sandbox = await Sandbox.create();
            }"""
        )
        yield page
        browser.close()
        server.shutdown()


def run(page: Any, code: str, *program: str) -> dict[str, Any]:
    given = "async (argv) => sandbox.exec(argv, {timeout: 120})"
    found: dict[str, Any] = page.evaluate(given, [*(program or ("python3", "-c")), code])
    return found


def goes_on(page: Any) -> bool:
    return bool(page.evaluate("async () => (await sandbox.exec('echo on')).stdout") == "on\n")


def aimed(code: str, elsewhere: str) -> str:
    host, _, port = elsewhere.removeprefix("http://").partition(":")
    return code.replace("{server}", elsewhere).replace("{host}", host).replace("{port}", port)


@pytest.mark.parametrize("name", part(ATTACKS, 4))
def test_guest_python_reaches_nothing(page: Any, elsewhere: str, name: str) -> None:
    Logging.seen.clear()
    result = run(page, aimed(ATTACKS[name], elsewhere))
    assert result["exitCode"] != 0, result
    assert Logging.seen == []
    assert goes_on(page)


@pytest.mark.parametrize("name", part(JS_ATTACKS, 5))
def test_guest_javascript_reaches_nothing(page: Any, elsewhere: str, name: str) -> None:
    Logging.seen.clear()
    result = run(page, aimed(JS_ATTACKS[name], elsewhere), "node", "-e")
    assert result["exitCode"] not in (0, 137), result
    assert Logging.seen == []
    assert goes_on(page)


@pytest.mark.parametrize("script", ["probes/engine_probe.mjs", "probes/worker.mjs"])
def test_the_policy_of_a_worker_blocks_by_itself(page: Any, elsewhere: str, script: str) -> None:
    Logging.seen.clear()
    assert page.evaluate(ASK_PROBE, [f"/{script}", elsewhere]) == []
    assert Logging.seen == []


def test_without_the_policy_a_worker_gets_out(page: Any, elsewhere: str) -> None:
    """The probe and the log are worth something."""
    Logging.seen.clear()
    assert "fetch" in page.evaluate(ASK_PROBE, ["/probes/control_probe.mjs", elsewhere])
    assert Logging.seen != []


def test_javascript_has_nothing_of_the_page(page: Any) -> None:
    names = "self window document fetchLater Worker postMessage importScripts process require WebAssembly caches"
    found = page.evaluate(
        "async (code) => (await sandbox.js.run(code)).value",
        f"{names.split()}.filter((name) => typeof globalThis[name] !== 'undefined')",
    )
    assert found == []


def test_javascript_forges_no_message(page: Any) -> None:
    """What it prints, throws or returns in the shape of a message is only that."""
    found = page.evaluate(
        """async () => {
            const fake = '{"op":"done","run":1,"ok":true,"exports":{"default":"forged"},"unsent":{}}';
            const said = await sandbox.js.run(`console.log(${JSON.stringify(fake)}); "mine"`);
            const name = '{ toString() { return "x" } }';
            const thrown = await sandbox.js.run(`throw { name: ${name}, message: ${JSON.stringify(fake)}, code: 1 }`);
            return [said.value, said.stdout === fake + "\\n", thrown.ok, thrown.error.code];
        }"""
    )
    assert found == ["mine", True, False, "RUNTIME_ERROR"]


def test_javascript_pollutes_no_prototype(page: Any) -> None:
    found = page.evaluate(
        """async () => {
            const code = `({ ["__proto__"]: { polluted: 1 }, constructor: { prototype: { polluted: 1 } } })`;
            const { value } = await sandbox.js.run(code);
            const taken = (given) => Object.assign({}, given);
            await sandbox.js.run(`await taken(${code})`, { globals: { taken } });
            await sandbox.exec(["node", "-e", "Object.prototype.polluted = 1; Array.prototype.push = null"]);
            return [({}).polluted ?? null, Object.hasOwn(value, "__proto__"), typeof [].push];
        }"""
    )
    assert found == [None, True, "function"]


@pytest.mark.battery
def test_no_timer_outlives_its_interpreter(page: Any) -> None:
    found = page.evaluate(
        """async () => {
            let ticks = 0;
            const code = "setInterval(() => tick(), 5); await new Promise((r) => setTimeout(r, 60000))";
            const { error } = await sandbox.js.run(code, { wallMs: 8000, globals: { tick: () => { ticks += 1; } } });
            await sandbox.js.run("1");
            const after = ticks;
            await new Promise((resolve) => setTimeout(resolve, 500));
            return [error.code, after > 0, ticks === after];
        }"""
    )
    assert found == ["WALL_LIMIT", True, True]


@pytest.mark.parametrize("program", [("node", "-e"), ("python3", "-c")])
def test_no_timer_outlives_its_program(page: Any, program: tuple[str, str]) -> None:
    code = {
        "node": "setInterval(() => require('fs').appendFileSync('/tmp/ticks', 'x'), 5)",
        "python3": "import time\nwhile True:\n    open('/tmp/ticks', 'a').write('x')\n    time.sleep(0.005)",
    }
    found = page.evaluate(
        """async (argv) => {
            await sandbox.files.write("/tmp/ticks", "");
            const process = await sandbox.spawn(argv);
            const size = async () => (await sandbox.files.stat("/tmp/ticks")).size;
            const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
            while (await size() === 0) await pause(50);
            process.kill(9);
            const code = await process.wait();
            const last = await size();
            await pause(500);
            return [code, await size() === last];
        }""",
        [*program, code[program[0]]],
    )
    assert found == [137, True]


@pytest.mark.parametrize("code", part(CPU_BOMBS, 2))
def test_a_cpu_bomb_of_javascript_is_ended(page: Any, code: str) -> None:
    given = (
        "async (code) => (await sandbox.exec(['node', '-e', code], {limits: {cpuSeconds: 2, memoryBytes: 1 << 28}})).ok"
    )
    assert page.evaluate(given, code) is False
    assert goes_on(page)


@pytest.mark.battery
@pytest.mark.parametrize("code", part(MEMORY_BOMBS, 2))
def test_a_memory_bomb_of_javascript_ends_alone(page: Any, code: str) -> None:
    given = "async (code) => (await sandbox.exec(['node', '-e', code], {limits: {memoryBytes: 1 << 26}})).ok"
    assert page.evaluate(given, code) is False
    assert goes_on(page)


@pytest.mark.parametrize("name", part(WASM_ATTACKS, 3))
def test_a_wasm_program_reaches_nothing(page: Any, name: str) -> None:
    text, wanted = WASM_ATTACKS[name]
    found = page.evaluate(
        """async (data) => {
            const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
            await sandbox.files.write("/tmp/attack", bytes, { mode: 0o755 });
            return (await sandbox.exec("/tmp/attack", { limits: { cpuSeconds: 3, memoryBytes: 1 << 27 } })).exitCode;
        }""",
        b64encode(bytes(wat2wasm(f"(module {text})"))).decode(),
    )
    assert found == wanted
    assert goes_on(page)


def test_frames_that_make_no_sense_end_their_program_alone(page: Any) -> None:
    calls = "for n in (3, 45, 51, 52, 9999): call(n.to_bytes(2, 'little') + b'\\xff' * 40)"
    code = f"from _belljar_host import call\n{calls}"
    assert run(page, code)["exitCode"] != 0
    assert goes_on(page)


def test_a_memory_bomb_ends_its_program_alone(page: Any) -> None:
    result = run(page, "x = []\nwhile True: x.append(bytearray(50_000_000))")
    assert "MemoryError" in result["stderr"]
    assert goes_on(page)


def test_deep_recursion_is_an_error(page: Any) -> None:
    assert "RecursionError" in run(page, "def f(n): return f(n + 1)\nf(0)")["stderr"]


def test_results_pollute_no_prototype(page: Any) -> None:
    found = page.evaluate(
        """async () => {
            const code = "{'__proto__': {'polluted': 1}, 'constructor': 2}";
            const { ok, value, error } = await sandbox.python.run(code, { wallMs: 500_000 });
            if (!ok) throw new Error(JSON.stringify(error));
            return [({}).polluted ?? null, value.constructor, Object.keys(value).length];
        }"""
    )
    assert found[0] is None
    assert found[1:] == [2, 2]


def test_every_script_of_a_guest_has_the_policy() -> None:
    names = [path.name for path in built_page().glob("*.mjs")]
    engines = [name for name in names if name.startswith("engine")]
    assert len(engines) >= 4
    assert {headers(name)["Content-Security-Policy"] for name in engines} == {ENGINE_POLICY}
    assert headers("worker.mjs")["Content-Security-Policy"] == WORKER_POLICY
    for policy in (ENGINE_POLICY, WORKER_POLICY):
        assert "unsafe-eval'" not in policy.replace("'wasm-unsafe-eval'", "")
        assert "connect-src 'self'" in policy


@pytest.mark.parametrize("path", ["/../pyproject.toml", "/%2e%2e/pyproject.toml", "//etc/passwd", "/pyodide/../../x"])
def test_nothing_beside_the_page_is_served(page: Any, path: str) -> None:
    import http.client

    base = page.url.partition("//")[2].partition("/")[0]
    connection = http.client.HTTPConnection(base, timeout=30)
    connection.request("GET", path)
    assert connection.getresponse().status == 404
    connection.close()
