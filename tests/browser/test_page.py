"""The demonstration page, what embeds a sandbox, and what other origins may do with it, in Chromium."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import time
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import pytest

from belljar.browser.build_host import build_guest
from belljar.browser.embedders_host import EMBEDDERS, check_origins, read_origins
from belljar.browser.errors import BuildError
from belljar.browser.packages_host import unpack_packages
from belljar.browser.parts_host import MSGSPEC, PYODIDE_PLATFORM, fetch
from belljar.browser.serve_host import Handler, headers
from belljar.engines.owner.js_build_host import node
from tests.browser.page import ROOT, built_page

pytestmark = pytest.mark.slow
SECONDS = 300
KEY = "sk-canary"


@contextmanager
def serving(handler: Any, host: str = "localhost") -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://{host}:{server.server_port}"
        server.shutdown()


def page_handler(directory: Path) -> Any:
    return lambda *given: Handler(*given, directory=str(directory))


def page_copy(place: Path, **replaced: str) -> Path:
    """The built page with other files in some places (a name's last underscore is a dot)."""
    place.mkdir()
    for path in built_page().iterdir():
        if path.is_dir():
            (place / path.name).symlink_to(path)
        else:
            shutil.copy(path, place)  # Node looks for a module's neighbours where it really is
    for name, text in replaced.items():
        target = place / ".".join(name.rsplit("_", 1))
        target.unlink(missing_ok=True)
        target.write_text(text)
    return place


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    from tests.chromium import ARGUMENTS, chromium

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium(), args=list(ARGUMENTS))
        yield launched
        launched.close()


@pytest.fixture
def tab(browser: Any) -> Iterator[Any]:
    context = browser.new_context()
    context.set_default_timeout(SECONDS * 1000)
    yield context.new_page()
    context.close()


class Model(BaseHTTPRequestHandler):
    """An endpoint that first wants a command run, and then says what came out."""

    asked: ClassVar[list[tuple[str, dict[str, Any]]]] = []

    def do_OPTIONS(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append((self.headers["Authorization"], said))
        last = said["messages"][-1]
        message: dict[str, Any]
        if last["role"] == "tool":
            message = {"role": "assistant", "content": f"It said: {last['content']}"}
        else:
            call = {"name": "bash", "arguments": json.dumps({"command": "seq 20 | paste -sd+ | bc | tee sum"})}
            message = {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": call}]}
        self._answer(json.dumps({"choices": [{"message": message}]}).encode())

    def _answer(self, data: bytes) -> None:
        self.send_response(200)
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Access-Control-Allow-Headers", "authorization, content-type")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


def wait_until_started(tab: Any) -> None:
    tab.wait_for_function(
        "() => globalThis.sandbox !== undefined && document.getElementById('status').textContent === ''"
    )


def test_page(tab: Any) -> None:
    """A visit: the terminal, a cell, the agent; the session kept in the browser, and shared by a link."""
    Model.asked.clear()
    with serving(page_handler(built_page())) as url, serving(Model) as endpoint:
        tab.goto(url)
        wait_until_started(tab)
        tab.locator("#terminal .xterm-rows", has_text="/workspace $").wait_for()
        tab.locator(".xterm-helper-textarea").press_sequentially("echo $((6 * 7)) > answer; printf '\\377' > raw\n")
        tab.locator("#list .name", has_text="raw").click()
        tab.locator("#keep:disabled").wait_for()  # it is no text: saved as such, it would be another file
        tab.locator("#list .name", has_text="answer").click()
        tab.locator("#keep:enabled").wait_for()
        assert tab.input_value("#text") == "42\n"

        tab.click("[data-view=cells]")
        tab.fill("#code", "open('answer').read()")
        tab.click("#cell button")
        tab.locator(".run .value", has_text='"42\\n"').wait_for()

        tab.click("[data-view=agent]")
        tab.fill("#endpoint", f"{endpoint}/v1/")
        tab.fill("#model", "some-model")
        tab.fill("#key", KEY)
        tab.fill("#wish", "The sum, please.")
        tab.click("#task .main")
        tab.locator("#talk .answer", has_text="It said: 210").wait_for()
        assert tab.locator("#talk .command").inner_text() == "seq 20 | paste -sd+ | bc | tee sum"
        (authorization, first), (_, second) = Model.asked
        assert authorization == f"Bearer {KEY}"
        assert first["model"] == "some-model"
        assert second["messages"][-1] == {"role": "tool", "tool_call_id": "1", "content": "210"}
        kept = "() => JSON.stringify([{ ...sessionStorage }, { ...localStorage }])"
        assert KEY not in tab.evaluate(kept)
        tab.click("#settings summary")
        tab.check("#remember")
        assert KEY in tab.evaluate("() => JSON.stringify({ ...sessionStorage })")
        tab.uncheck("#remember")
        assert KEY not in tab.evaluate(kept)

        tab.click("#session")
        tab.fill("#saved-name", "mine: ½/1")
        tab.click("#saving button")
        tab.locator("#saved .name", has_text="mine: ½/1").wait_for()
        tab.click("#share")
        tab.wait_for_function("() => document.getElementById('link').value !== ''")
        link = tab.input_value("#link")
        assert len(link) < 2000

        tab.goto("about:blank")
        tab.goto(url)
        wait_until_started(tab)
        assert tab.evaluate("() => sandbox.files.exists('answer')") is False
        tab.click("#session")
        tab.locator("#saved button", has_text="Open").click()
        tab.wait_for_function("async () => await sandbox.files.exists('answer')")
        tab.click("#session")
        tab.locator("#saved button", has_text="Remove").click()
        tab.wait_for_function("() => document.querySelector('#saved li') === null")
        tab.keyboard.press("Escape")

        tab.goto("about:blank")
        tab.goto(link)
        tab.locator("#offer[open]").wait_for()
        assert tab.locator("#offered .name").all_inner_texts() == [
            f"/workspace/{n}" for n in ("README", "answer", "raw", "sum")
        ]
        assert tab.evaluate("() => globalThis.sandbox") is None  # nothing was made before the user has said yes
        tab.click("#offer .main")
        wait_until_started(tab)
        assert tab.evaluate("() => sandbox.files.read('sum')") == "210\n"
        assert "#" not in tab.url

        tab.goto(f"{url}/#files=AAAA")
        tab.locator("#status.bad", has_text="the link is damaged").wait_for()


@pytest.mark.battery
def test_offline(tab: Any) -> None:
    """After one visit the page needs its server no more."""
    with serving(page_handler(built_page())) as url:
        tab.goto(url)
        wait_until_started(tab)
        tab.evaluate("async () => { await navigator.serviceWorker.ready; }")
    tab.goto("about:blank")
    tab.goto(url)
    wait_until_started(tab)
    found = tab.evaluate("async () => (await sandbox.exec('echo shell; python3 -c \"print(6 * 7)\"')).stdout")
    assert found == "shell\n42\n"


def test_links() -> None:
    command = [str(node()), str(ROOT / "tests/browser/links.mjs"), str(built_page())]
    done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
    assert (done.returncode, done.stderr.decode(), done.stdout) == (0, "", b"")


def test_embed_example(tab: Any, tmp_path: Path) -> None:
    """The ten lines of docs/browser.md."""
    (example,) = re.findall(r"```html\n(.*?)```", (ROOT / "docs/browser.md").read_text(), re.DOTALL)
    assert example.count("\n") <= 10
    (tmp_path / "index.html").write_text(example)
    (tmp_path / "page").symlink_to(built_page())

    class Owner(Handler):
        """Headers as docs/browser.md has them: a policy for the workers only."""

        def send_header(self, keyword: str, value: str) -> None:
            if keyword != "Content-Security-Policy" or "worker" in self.path or "engine" in self.path:
                super().send_header(keyword, value)

    with serving(lambda *given: Owner(*given, directory=str(tmp_path))) as url:
        tab.goto(url)
        tab.locator("body", has_text="HELLO 42").wait_for()


TSC = ROOT / "web/node_modules/typescript/bin/tsc"
TYPES = ["--strict", "--noEmit", "--module", "nodenext", "--target", "es2024", "--lib", "es2024,dom,dom.asynciterable"]


@pytest.mark.skipif(not TSC.exists(), reason="make web has not fetched TypeScript")
def test_types(tmp_path: Path) -> None:
    """The package is used from TypeScript, by its name."""
    shutil.copy(ROOT / "tests/browser/types.ts", tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules/belljar").symlink_to(built_page())
    command = [str(node()), str(TSC), *TYPES, "--types", "", "types.ts"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=SECONDS, check=False)
    assert (done.returncode, done.stdout.decode()) == (0, "")


BRIDGED = """async (bridge) => {
    const { Sandbox } = await import("/belljar.mjs");
    const sandbox = await Sandbox.create({ bridge, files: { a: "hello" }, tools: { twice: (n) => 2 * n } });
    const results = [await sandbox.exec("cat a; twice 21")];
    results.push(await sandbox.exec("while :; do :; done", { timeout: 1 }));
    const python = await sandbox.exec("python3 -c 'print(6 * 7)'");
    const { value } = await sandbox.js.run("const x = 6; x * await seven()", { globals: { seven: () => 7 } });
    sandbox.close();
    const frame = document.querySelector("iframe");
    return [...results.map(({ stdout, exitCode }) => [stdout, exitCode]), python.stdout + python.stderr, value, frame];
}"""
FRAMED = """(bridge) => new Promise((resolve) => {
    const frame = document.createElement("iframe");
    frame.onload = resolve;
    frame.src = `${bridge}/bridge.html`;
    document.body.append(frame);
})"""
STRANGER = """(bridge) => new Promise((resolve) => {
    const told = [];
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = ({ data }) => told.push(data);
    window.addEventListener("message", ({ data, origin }) => told.push([data, origin]));
    const opened = window.open(`${bridge}/bridge.html`);
    globalThis.start = () => opened.postMessage({ belljar: "start" }, "*", [port2]);
    globalThis.told = told;
    resolve();
})"""


@pytest.mark.battery
def test_bridge(browser: Any, tmp_path: Path) -> None:
    """A sandbox on an origin of its own serves the pages that it was built for, and no others."""
    requested: list[str] = []

    class Noting(Handler):
        def send_head(self) -> Any:
            requested.append(self.path)
            return super().send_head()

    class Plain(Handler):
        """An embedder that is cross-origin isolated, with no policy that matters here."""

        def send_header(self, keyword: str, value: str) -> None:
            if keyword != "Content-Security-Policy":
                super().send_header(keyword, value)

    class Unisolated(Plain):
        def send_header(self, keyword: str, value: str) -> None:
            if not keyword.startswith("Cross-Origin"):
                super().send_header(keyword, value)

    plain = page_copy(tmp_path / "plain", empty_html="<!doctype html><body>")
    with (
        serving(lambda *given: Plain(*given, directory=str(plain))) as embedder,
        serving(lambda *given: Unisolated(*given, directory=str(plain)), "127.0.0.1") as stranger,
    ):
        apart = page_copy(tmp_path / "apart", embedders_json=json.dumps({"origins": [embedder]}))
        with serving(lambda *given: Noting(*given, directory=str(apart)), "127.0.0.1") as bridge:
            context = browser.new_context()
            context.set_default_timeout(SECONDS * 1000)
            tab = context.new_page()
            tab.goto(f"{embedder}/empty.html")
            said = tab.evaluate(
                BRIDGED,
                bridge,
            )
            assert said == [["hello42\n", 0], ["", 124], "42\n", 42, None]
            tab.goto(f"{stranger}/empty.html")
            requested.clear()
            with tab.expect_popup() as opening:
                tab.evaluate(STRANGER, bridge)
            popup = opening.value
            until = time.monotonic() + SECONDS / 2
            while "/embedders.json" not in requested:
                assert time.monotonic() < until
                popup.wait_for_timeout(50)
            popup.wait_for_load_state("networkidle")
            tab.evaluate("() => globalThis.start()")
            popup.evaluate("() => new Promise((resolve) => setTimeout(resolve, 500))")
            assert tab.evaluate("() => globalThis.told") == []
            assert not any("worker.mjs" in path for path in requested)
            framed = context.new_page()
            framed.goto(f"{stranger}/empty.html")
            requested.clear()
            framed.evaluate(FRAMED, bridge)
            assert [path for path in requested if path != "/bridge.html"] == []  # the frame stayed empty
            context.close()


def test_headers_of_the_bridge(tmp_path: Path) -> None:
    assert "frame-ancestors 'none'" in headers("bridge.html")["Content-Security-Policy"]
    allowed = headers("bridge.html", ["https://app.example"])
    assert allowed["Content-Security-Policy"].endswith("frame-ancestors https://app.example")
    assert headers("index.html", ["https://app.example"])["Content-Security-Policy"].endswith("frame-ancestors 'self'")
    for wrong in (
        "app.example",
        "https://app.example/",
        "https://a b",
        "https://a; script-src *",
        "javascript:1",
        "http://[::",
    ):
        with pytest.raises(BuildError, match="is no origin"):
            check_origins([wrong])
    (tmp_path / EMBEDDERS).write_text('{"origins": ["https://app.example", "*"]}')
    assert read_origins(tmp_path) == []
    with serving(page_handler(built_page())) as url, urllib.request.urlopen(f"{url}/bridge.html") as answer:  # noqa: S310
        assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]


def make_wheel(place: Path, name: str, files: dict[str, str]) -> Path:
    with zipfile.ZipFile(place / name, "w") as wheel:
        for inside, text in files.items():
            wheel.writestr(inside, text)
    return place / name


def test_packages_are_unpacked(tmp_path: Path) -> None:
    files = {
        "pure/__init__.py": "x = 1\n",
        "pure-1.data/purelib/more.py": "",
        "pure-1.data/scripts/run": "",
        "pure/a.pyi": "",
    }
    (tmp_path / "wheels").mkdir()
    make_wheel(tmp_path / "wheels", "pure-1-py3-none-any.whl", files)
    code = "\0asm"
    compiled = make_wheel(tmp_path / "wheels", f"compiled-1-cp314-cp314-{PYODIDE_PLATFORM}.whl", {"compiled.so": code})
    found = dict(unpack_packages([str(tmp_path / "wheels")], tmp_path / "one", {}))
    assert sorted(found) == ["compiled.json", "compiled.so", "more.py", "pure/__init__.py"]
    assert found["pure/__init__.py"].read_text() == "x = 1\n"
    assert json.loads(found["compiled.json"].read_text()) == [hashlib.sha256(code.encode()).hexdigest()]
    empty = tmp_path / "empty"
    empty.mkdir()
    known = {compiled.name: hashlib.sha256(b"another").hexdigest()}
    for number, (named, why) in enumerate(
        (
            (make_wheel(tmp_path, "bad-1-py3-none-any.whl", {"../../out.py": ""}), "outside of itself"),
            (make_wheel(tmp_path, "bad-1-cp314-cp314-manylinux_2_28_x86_64.whl", {"a.py": ""}), "another Python"),
            (make_wheel(tmp_path, f"bad-1-cp313-cp313-{PYODIDE_PLATFORM}.whl", {"a.py": ""}), "another Python"),
            (make_wheel(tmp_path, "bad-1-cp314-cp314-pyemscripten_2025_0_wasm32.whl", {}), "another Python"),
            (compiled, "another digest"),
            (empty, "no wheels"),
            (tmp_path / "no.whl", "no such file"),
            (make_wheel(tmp_path, "bad.whl", {}), "no name of a wheel"),
        )
    ):
        with pytest.raises(BuildError, match=why):
            list(unpack_packages([str(named)], tmp_path / f"bad{number}", known))


LOADED = """
import pathlib
import msgspec, pure.inside
msgspec.json.encode({"a": pure.inside.__name__, "b": (pathlib.Path(pure.__file__).parent / "data").read_text()})
"""
FORGED = """
import glob, sys
(path,) = glob.glob("/lib/belljar-guest/msgspec/_core*.so")
data = bytearray(open(path, "rb").read())
data[-1] ^= 1
forged = path if {own} else "/tmp/" + path.rpartition("/")[2]
open(forged, "wb").write(data)
sys.path.insert(0, "/tmp")
try:
    import {name}
except ImportError as error:
    print(error)
"""


@pytest.mark.battery
def test_packages_of_the_owner_are_loaded(tab: Any, tmp_path: Path) -> None:
    """A compiled one, too; compiled code that is not hosted is refused, wherever it is."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    shutil.copy(fetch(MSGSPEC), wheels / f"msgspec-{MSGSPEC.version}-cp314-cp314-{PYODIDE_PLATFORM}.whl")
    pure = {"pure/__init__.py": "", "pure/inside.py": "", "pure/data": "text"}
    make_wheel(wheels, "pure-1-py3-none-any.whl", pure)
    packed = page_copy(tmp_path / "packed")
    build_guest(packed, [str(wheels)], {})
    with serving(page_handler(packed)) as url:
        tab.goto(f"{url}/package.json")
        found = tab.evaluate(
            """async (codes) => {
                const { Sandbox } = await import("/belljar.mjs");
                const sandbox = await Sandbox.create();
                const [loaded, ...forged] = codes;
                const { value, error } = await sandbox.python.run(loaded, { wallMs: 200_000 });
                const told = [value === null ? error.message : new TextDecoder().decode(value)];
                for (const code of ["import msgspec; print(msgspec.json.decode('[1]'))", ...forged]) {
                    const { stdout, stderr } = await sandbox.exec(["python3", "-c", code]);
                    told.push(stdout + stderr);
                }
                sandbox.close();
                return told;
            }""",
            [LOADED, FORGED.format(own=False, name="_core"), FORGED.format(own=True, name="msgspec")],
        )
    assert found[:2] == ['{"a":"pure.inside","b":"text"}', "[1]\n"]
    assert ["none of the compiled modules" in text for text in found[2:]] == [True, True], found
