"""The public API of a sandbox in a page and in Node: the cases of battery.mjs."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from belljar.browser.embedders_host import EMBEDDERS
from belljar.browser.serve_host import Handler
from belljar.engines.owner.js_build_host import node
from tests.browser.page import built_page
from tests.browser.programs import FROM_C, programs, programs_from_c

HERE = Path(__file__).parent
FILES = ("battery.mjs", "battery_api.mjs", "battery_js.mjs", "battery_wasi.mjs")
CASES = [name for file in FILES for name in re.findall(r'^test\("(.*?)",', (HERE / file).read_text(), re.MULTILINE)]
WHOLE = bool(os.environ.get("BELLJAR_WHOLE"))
SHARE = 14
SECONDS = 3000

pytestmark = pytest.mark.slow


def part(first: int) -> list[str]:
    """All cases, or one of so many: other ones in Node than in Chromium."""
    return [name for number, name in enumerate(CASES) if WHOLE or (number % SHARE == first and name not in FROM_C)]


IN_NODE, IN_CHROMIUM, BY_BRIDGE = part(0), part(SHARE // 2), part(SHARE // 4)


def check(results: list[dict[str, object]], names: list[str]) -> None:
    found = {str(result["name"]): result["error"] for result in results}
    assert sorted(found) == sorted(names)
    assert {name: error for name, error in found.items() if error} == {}


@pytest.fixture(scope="module")
def wasm(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The programs that cases run."""
    return {**programs(), **(programs_from_c(tmp_path_factory.mktemp("programs")) if WHOLE else {})}


def test_there_are_enough_cases() -> None:
    assert len(CASES) == len(set(CASES)) >= 120


def test_node(wasm: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "work.json").write_text(json.dumps({"names": IN_NODE, "programs": wasm}))
    command = [str(node()), str(HERE / "battery_node.mjs"), str(built_page()), str(tmp_path / "work.json")]
    done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    check([json.loads(line) for line in done.stdout.splitlines()], IN_NODE)


class Answering(BaseHTTPRequestHandler):
    """Another origin, which lets every page in."""

    def do_GET(self) -> None:
        data = b"hello from the server\n"
        self.send_response(200)
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def elsewhere() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@contextmanager
def serving(directory: Path, host: str, *dropped: str) -> Iterator[str]:
    """The address of a page's directory, and beside it the battery's modules; without some headers."""

    class Tested(Handler):
        def translate_path(self, path: str) -> str:
            name = path.partition("?")[0].removeprefix("/tests/")
            return str(HERE / name) if "/" not in name and path.startswith("/tests/") else super().translate_path(path)

        def send_header(self, keyword: str, value: str) -> None:
            if keyword not in dropped:
                super().send_header(keyword, value)

    with ThreadingHTTPServer(("127.0.0.1", 0), lambda *given: Tested(*given, directory=str(directory))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://{host}:{server.server_port}"
        server.shutdown()


def run_in_chromium(url: str, work: Mapping[str, object], always: dict[str, str]) -> list[dict[str, object]]:
    """Run cases in a page of that address. `always`: an option of each sandbox."""
    from playwright.sync_api import sync_playwright

    from tests.chromium import ARGUMENTS, chromium

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(ARGUMENTS))
        page = browser.new_page()
        page.set_default_timeout(SECONDS * 1000)
        page.goto(f"{url}/package.json")  # a page of that origin, with nothing in it
        results: list[dict[str, object]] = page.evaluate(
            """async ([work, always]) => {
                const { Sandbox } = await import("/belljar.mjs");
                const { runCases } = await import("/tests/run_cases.mjs");
                const results = [];
                await runCases(Sandbox, work, (result) => results.push(result), always);
                return results;
            }""",
            [work, always],
        )
        browser.close()
    return results


def test_chromium(elsewhere: str, wasm: dict[str, str]) -> None:
    with serving(built_page(), "localhost") as url:
        work = {"names": IN_CHROMIUM, "programs": wasm, "server": elsewhere}
        check(run_in_chromium(url, work, {}), IN_CHROMIUM)


@pytest.mark.battery
def test_chromium_by_a_bridge(elsewhere: str, wasm: dict[str, str], tmp_path: Path) -> None:
    """The same API where the sandbox lives on an origin of its own."""
    for path in built_page().iterdir():
        if path.name != EMBEDDERS:
            (tmp_path / path.name).symlink_to(path)
    # The page that embeds has no policy: that of the demonstration lets no frames in.
    with (
        serving(built_page(), "localhost", "Content-Security-Policy") as url,
        serving(tmp_path, "127.0.0.1") as bridge,
    ):
        (tmp_path / EMBEDDERS).write_text(json.dumps({"origins": [url]}))
        work = {"names": BY_BRIDGE, "programs": wasm, "server": elsewhere}
        check(run_in_chromium(url, work, {"bridge": bridge}), BY_BRIDGE)
