"""`belljar serve` by the stock E2B SDK, beside the library in this process and a bare Starlette app, or `--quick`.

Each row: the call, its median, that of what it is beside (by the same client), and the difference.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

ROUNDS = 50 if "--quick" in sys.argv else 500
BARE = """
import uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
async def health(request):
    return Response(status_code=204)
uvicorn.run(Starlette(routes=[Route("/health", health)]), port=PORT, http="h11", access_log=False, log_level="error")
"""


def median(call: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Milliseconds, after a few that don't count."""
    for _ in range(5):
        call()
    taken: list[float] = []
    for _ in range(rounds):
        began = time.perf_counter()
        call()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken) * 1e3


def show(what: str, ours: float, beside: str, theirs: float) -> None:
    print(f"{what:28} {ours:8.2f} ms   {beside:18} {theirs:8.2f} ms   +{ours - theirs:.2f} ms")


def main() -> None:
    bare_port = 39871
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-m", "belljar.cli", "serve", "--port", "0", "--store", f"{directory}/s.db"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        bare = subprocess.Popen([sys.executable, "-c", BARE.replace("PORT", str(bare_port))])
        try:
            assert server.stdout is not None
            said = "".join(server.stdout.readline() for _ in range(2))
            url, key = re.findall(r"http\S+", said)[0], re.findall(r"bj_\w+", said)[0]
            os.environ |= {"E2B_API_KEY": key, "E2B_API_URL": url, "E2B_SANDBOX_URL": url}
            measure(f"http://127.0.0.1:{bare_port}")
        finally:
            for process in (server, bare):
                process.terminate()
                process.wait()


def measure(bare_url: str) -> None:
    from e2b import Sandbox

    from belljar import Sandbox as Local

    sandbox = Sandbox.create(timeout=600)
    plain = Sandbox.connect(sandbox.sandbox_id, sandbox_url=bare_url)
    echo = median(plain.is_running)
    with Local() as local:
        inside = median(lambda: local.exec("echo hi"))
        show("commands.run('echo hi')", median(lambda: sandbox.commands.run("echo hi")), "bare Starlette", echo)
        show("", median(lambda: sandbox.commands.run("echo hi")), "Sandbox.exec", inside)
    show("is_running()", median(sandbox.is_running), "bare Starlette", echo)
    show("files.read (1 kB)", median(lambda: sandbox.files.read("/etc/passwd")), "bare Starlette", echo)
    show("create and kill", median(lambda: Sandbox.create().kill(), ROUNDS // 5), "bare Starlette", 2 * echo)
    data = os.urandom(100_000_000)
    began = time.perf_counter()
    sandbox.files.write("big", data, use_octet_stream=True)
    up = time.perf_counter() - began
    began = time.perf_counter()
    assert sandbox.files.read("big", format="bytes") == data
    down = time.perf_counter() - began
    print(f"100 MB up {100 / up:.0f} MB/s, down {100 / down:.0f} MB/s")
    sandbox.kill()


if __name__ == "__main__":
    main()
