"""tests/spec inside Pyodide: the shell and the utilities do there what they do elsewhere, but for what is listed."""

from __future__ import annotations

import json
import os
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from belljar.browser.serve_host import Handler
from belljar.engines.owner.js_build_host import node
from tests.browser.page import ROOT, built_page

pytestmark = pytest.mark.slow
WHOLE = bool(os.environ.get("BELLJAR_WHOLE"))
PARTS = 4 if WHOLE else 24
RUN = range(PARTS) if WHOLE else [0]
KNOWN = frozenset({
    "bin/awk.spec:181", "bin/sed.spec:3586", "bin/sed.spec:3602", "corpus/text.spec:295",  # the longest match: RE2
    "bin/awk.spec:965", "shell/arithmetic.spec:114",  # 1,000 and 3,000 calls deep: V8's stack
    "bin/cksum.spec:71",  # SM3: OpenSSL
})  # fmt: skip
"""What differs in a page, with what it lacks; docs/browser.md says so, too."""
SPARE = 0 if WHOLE else 1
"""Further cases that may fail: CI's machine may be so busy that a case about time does."""
DEATHS = 5
"""Of the runtime in one part; each is a failed case, and the next ones get a new runtime."""
SECONDS = 3600

Message = dict[str, Any]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """The cases, and what runs them."""
    made = tmp_path / "specs.zip"
    with zipfile.ZipFile(made, "w") as packed:
        for name in ("__init__.py", "adapter.py", "browser/__init__.py", "browser/specs_inside.py", "spec/cases.py"):
            packed.write(ROOT / "tests" / name, f"tests/{name}")
        for path in sorted((ROOT / "tests/spec").rglob("*.spec")):
            packed.write(path, f"tests/spec/{path.relative_to(ROOT / 'tests/spec')}")
    return made


def check(run: Callable[[int, int], list[Message]]) -> None:
    """Run all parts: `run` has a part, from one of its cases on."""
    passed, failed = 0, []
    for part in RUN:
        first = 0
        for _ in range(DEATHS + 1):
            *told, last = run(part, first)
            assert "passed" in last, last
            passed += last["passed"]
            failed += [json.dumps(message) for message in told if message["case"] not in KNOWN]
            if "died" not in last:
                break
            failed.append(json.dumps(last))
            first = last["number"] + 1
        else:
            pytest.fail(f"the runtime died {DEATHS + 1} times: {failed}")
    assert passed > (3900 if WHOLE else 50)
    assert len(failed) <= SPARE, "\n".join(failed)


def test_node(archive: Path) -> None:
    def run(part: int, first: int) -> list[Message]:
        script = [str(ROOT / "tests/browser/specs.mjs"), str(built_page()), str(archive)]
        command = [str(node()), "--experimental-wasm-jspi", *script, str(part), str(PARTS), str(first)]
        done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        assert lines, done.stderr.decode()[-2000:]
        return lines

    check(run)


@pytest.fixture
def page_url(archive: Path) -> Iterator[str]:
    directory = built_page()
    ours = {"/tests/specs.zip": archive}
    for name in ("specs_run.mjs", "specs_worker.mjs"):
        ours[f"/tests/{name}"] = ROOT / "tests/browser" / name

    class Tested(Handler):
        """The page, and beside it what runs the cases."""

        def translate_path(self, path: str) -> str:
            return str(ours.get(path) or super().translate_path(path))

    with ThreadingHTTPServer(("127.0.0.1", 0), lambda *given: Tested(*given, directory=str(directory))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}/"
        server.shutdown()


def test_chromium(page_url: str) -> None:
    from playwright.sync_api import sync_playwright

    from tests.chromium import ARGUMENTS, chromium

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(ARGUMENTS))
        page = browser.new_page()
        page.set_default_timeout(SECONDS * 1000)
        page.goto(f"{page_url}package.json")  # a page of that origin, with nothing in it

        def run(part: int, first: int) -> list[Message]:
            told: list[Message] = page.evaluate(
                """(given) => new Promise((resolve, reject) => {
                    const told = [];
                    const worker = new Worker("/tests/specs_worker.mjs", { type: "module" });
                    worker.onerror = (event) => reject(new Error(event.message ?? "the worker could not be loaded"));
                    worker.onmessage = ({ data }) => {
                        told.push(data);
                        if (data.passed === undefined) return;
                        worker.terminate();
                        resolve(told);
                    };
                    worker.postMessage(given);
                })""",
                {"part": part, "parts": PARTS, "from": first},
            )
            return told

        check(run)
        browser.close()
