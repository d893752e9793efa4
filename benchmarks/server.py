"""`belljar serve` by the stock E2B SDK and RemoteSandbox, beside bare Starlette and the library in process.

Each row: the call, its median (and its tenth percentile, which load of other programs changes less), that of what it is
beside, the difference, and how large that may be. "echo" is a bare Starlette app that sends a POST's body back,
"WebSocket echo" one that sends messages back. "the same answer" is the same call of the SDK, which a bare app answers
with the same bytes each time: what the SDK itself takes is in both. "in process" is the library without a server.

Then 100 MB up and down, 200 sandboxes with 500 requests a second, and the memory of the server over many sandboxes that
are made, used and ended: `--cycles N`, 2,000 unless told. `--quick` has fewer rounds. It gives up after `--minutes M`,
10 unless told (for 20,000 cycles give it 30).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

BARE = """
import uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
def frame(data, flags=0):
    return bytes((flags,)) + len(data).to_bytes(4, "big") + data
ANSWER = b"".join((
    frame(b'{"event":{"start":{"pid":2}}}'), frame(b'{"event":{"data":{"stdout":"aGkK"}}}'),
    frame(b'{"event":{"end":{"exitCode":0,"exited":true,"status":"exit status 0"}}}'), frame(b"{}", 2),
))
async def echo(request):
    return Response(await request.body())
async def run(request):
    await request.body()
    return Response(ANSWER, media_type="application/connect+json")
async def echo_messages(websocket):
    await websocket.accept()
    async for message in websocket.iter_bytes():
        await websocket.send_bytes(message)
routes = [
    Route("/echo", echo, methods=["POST"]),
    Route("/process.Process/Start", run, methods=["POST"]),
    WebSocketRoute("/messages", echo_messages),
]
uvicorn.run(
    Starlette(routes=routes), port=PORT, http="h11", ws="websockets-sansio", ws_per_message_deflate=False,
    access_log=False, log_level="error",
)
"""
MESSAGE = bytes(100)
MEGABYTES = 100

Times = tuple[float, float]
"""The median and the tenth percentile, in milliseconds."""


def times(taken: list[float]) -> Times:
    return statistics.median(taken) * 1e3, sorted(taken)[len(taken) // 10] * 1e3


def measure(call: Callable[[], object], rounds: int) -> Times:
    """After a few rounds that don't count."""
    taken: list[float] = []
    for _ in range(rounds + 5):
        began = time.perf_counter()
        call()
        taken.append(time.perf_counter() - began)
    return times(taken[5:])


async def measure_async(call: Callable[[], Awaitable[object]], rounds: int) -> Times:
    taken: list[float] = []
    for _ in range(rounds + 5):
        began = time.perf_counter()
        await call()
        taken.append(time.perf_counter() - began)
    return times(taken[5:])


def show(what: str, ours: Times, beside: str, theirs: Times, wanted: str = "") -> None:
    def text(each: Times) -> str:
        return f"{each[0]:6.2f} ({each[1]:.2f})"

    more = f"{ours[0] - theirs[0]:+.2f} ({ours[1] - theirs[1]:+.2f}) ms"
    print(f"{what:25} {text(ours):15} {beside:16} {text(theirs):15} {more:20} {wanted}".rstrip(), flush=True)


def show_speed(what: str, up: Callable[[bytes], object], down: Callable[[], object]) -> None:
    data = os.urandom(MEGABYTES * 1_000_000)
    began = time.perf_counter()
    up(data)
    middle = time.perf_counter()
    assert down() == data
    ended = time.perf_counter()
    speeds = f"up {MEGABYTES / (middle - began):.0f} MB/s, down {MEGABYTES / (ended - middle):.0f} MB/s"
    print(f"{what:25} {MEGABYTES} MB {speeds}, wanted: 100 MB/s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--cycles", type=int, default=2000)
    parser.add_argument("--minutes", type=float, default=10)
    options = parser.parse_args()
    rounds = 50 if options.quick else 500
    signal.signal(signal.SIGALRM, _give_up)
    signal.setitimer(signal.ITIMER_REAL, options.minutes * 60)
    with socket.create_server(("127.0.0.1", 0)) as free:
        bare_port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "serve.toml").write_text("[quota]\nsandboxes = 1000\nexecs_per_minute = 1000000\n")
        where = ["--store", f"{directory}/s.db", "--config", f"{directory}/serve.toml"]
        command = [sys.executable, "-m", "belljar.cli", "serve", "--port", "0", *where]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        bare = subprocess.Popen([sys.executable, "-c", BARE.replace("PORT", str(bare_port))])
        try:
            assert server.stdout is not None
            said = ""
            while "bj_" not in said or "http" not in said:
                line = server.stdout.readline()
                if not line:
                    sys.exit(f"the server did not start: {said}")
                said += line
            _wait_for(bare_port)
            url, key = re.findall(r"http://[\d.:]+", said)[0], re.findall(r"bj_\w+", said)[0]
            os.environ |= {"E2B_API_KEY": key, "E2B_API_URL": url, "E2B_SANDBOX_URL": url}
            print("milliseconds: median (tenth percentile)")
            with_sdk(f"http://127.0.0.1:{bare_port}", rounds)
            with_remote_sandbox(url, key, f"ws://127.0.0.1:{bare_port}/messages", rounds)
            asyncio.run(load(url))
            memory(server.pid, options.cycles)
        finally:
            for process in (server, bare):
                process.terminate()
            for process in (server, bare):
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    process.kill()


def _give_up(*_: object) -> None:
    sys.exit("not done in time: see --minutes")


def _wait_for(port: int) -> None:
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return


def with_sdk(bare_url: str, rounds: int) -> None:
    import httpx
    from e2b import Sandbox

    from belljar import Sandbox as Local

    sandbox = Sandbox.create(timeout=600)
    plain = Sandbox.connect(sandbox.sandbox_id, sandbox_url=bare_url)
    with Local() as local, httpx.Client(trust_env=False) as client:
        echo = measure(lambda: client.post(f"{bare_url}/echo", content=MESSAGE), rounds)
        run = measure(lambda: sandbox.commands.run("echo hi"), rounds)
        show("commands.run('echo hi')", run, "echo", echo, "wanted: +3")
        show("", run, "the same answer", measure(lambda: plain.commands.run("echo hi"), rounds))
        show("", run, "in process", measure(lambda: local.exec("echo hi"), rounds))
        read = measure(lambda: sandbox.files.read("/etc/hostname"), rounds)
        show("files.read()", read, "echo", echo)
        show("", read, "in process", measure(lambda: local.files.read("/etc/hostname"), rounds))
    made: list[Sandbox] = []
    create = measure(lambda: made.append(Sandbox.create()), rounds // 5)
    for each in made:
        each.kill()
    show("Sandbox.create()", create, "echo", echo, "wanted: +6")
    kept: list[Local] = []
    show("", create, "in process", measure(lambda: kept.append(Local()), rounds // 5))
    for one in kept:
        one.close()
    show_speed(
        "files.write and read",
        lambda data: sandbox.files.write("big", data, use_octet_stream=True),
        lambda: bytes(sandbox.files.read("big", format="bytes")),
    )
    sandbox.kill()


def with_remote_sandbox(url: str, key: str, echo_url: str, rounds: int) -> None:
    """Beside a message that is sent back, by the same library and each front's way to wait."""
    from websockets.asyncio.client import connect as connect_async
    from websockets.sync.client import connect

    from belljar import AsyncRemoteSandbox, RemoteSandbox, Sandbox

    with connect(echo_url, compression=None, proxy=None) as bare, RemoteSandbox(url, key) as sandbox:

        def echo() -> None:
            bare.send(MESSAGE)
            bare.recv()

        ours = measure(lambda: sandbox.exec("echo hi"), rounds)
        show("RemoteSandbox.exec", ours, "WebSocket echo", measure(echo, rounds), "wanted: +1")
        with Sandbox() as local:
            show("", ours, "in process", measure(lambda: local.exec("echo hi"), rounds))
        show_speed(
            "its files",
            lambda data: sandbox.files.write("big", data),
            lambda: sandbox.files.read_bytes("big"),
        )

    async def run() -> None:
        async with (
            connect_async(echo_url, compression=None, proxy=None) as bare,
            AsyncRemoteSandbox(url, key) as sandbox,
        ):

            async def echo() -> None:
                await bare.send(MESSAGE)
                await bare.recv()

            ours = await measure_async(lambda: sandbox.exec("echo hi"), rounds)
            show("AsyncRemoteSandbox.exec", ours, "WebSocket echo", await measure_async(echo, rounds), "wanted: +1")

    asyncio.run(run())


async def load(url: str, sandboxes: int = 200, rate: int = 500, seconds: int = 10) -> None:
    """So many sandboxes, and so many requests a second: one in ten of them runs a command."""
    from e2b import Sandbox

    made = [Sandbox.create(timeout=600) for _ in range(sandboxes)]
    host, port = url.removeprefix("http://").rstrip("/").split(":")
    taken: list[float] = []
    failures = 0

    async def client(number: int, count: int, gap: float) -> None:
        nonlocal failures
        reader, writer = await asyncio.open_connection(host, int(port))
        start = b'{"process": {"cmd": "/bin/bash", "args": ["-c", "echo hi"]}}'
        due = time.perf_counter() + gap * number / clients
        for turn in range(count):
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            due += gap
            began = time.perf_counter()
            sandbox = made[(number * 7 + turn) % len(made)]
            head = (
                f"Host: x\r\nE2b-Sandbox-Id: {sandbox.sandbox_id}\r\nX-Access-Token: {sandbox._envd_access_token}\r\n"
            )
            if turn % 10:
                writer.write(f"GET /files?path=/etc/hostname HTTP/1.1\r\n{head}\r\n".encode())
            else:
                body = b"\0" + len(start).to_bytes(4, "big") + start
                kind = f"Content-Type: application/connect+json\r\nContent-Length: {len(body)}\r\n\r\n"
                writer.write(f"POST /process.Process/Start HTTP/1.1\r\n{head}{kind}".encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            failures += b" 200 " not in answer.split(b"\r\n")[0]
            if b"chunked" in answer:
                await reader.readuntil(b"0\r\n\r\n")
            else:
                await reader.readexactly(int(answer.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]))
            taken.append(time.perf_counter() - began)
        writer.close()

    clients = 100
    began = time.perf_counter()
    async with asyncio.timeout(120):
        await asyncio.gather(*(client(n, rate * seconds // clients, clients / rate) for n in range(clients)))
    done = len(taken) / (time.perf_counter() - began)
    middle, late = statistics.median(taken) * 1e3, sorted(taken)[len(taken) * 99 // 100] * 1e3
    print(f"{len(made)} sandboxes, {len(taken)} requests: {done:.0f} a second of {rate}, {failures} failed")
    print(f"{'':14} median {middle:.1f} ms, 99 % within {late:.0f} ms", flush=True)
    for each in made:
        each.kill()


def memory(pid: int, cycles: int) -> None:
    """Of the server, over sandboxes made, used and ended."""
    from e2b import Sandbox

    def used() -> float:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            return sum(int(line.split()[1]) for line in file if line.startswith("Private_")) / 1024

    points = []
    for number in range(cycles + 1):
        if number % max(1, cycles // 4) == 0:
            points.append(used())
        sandbox = Sandbox.create()
        sandbox.commands.run("echo hi")
        sandbox.kill()
    print(f"memory of the server over {cycles} sandboxes: " + " ".join(f"{each:.1f}" for each in points) + " MB")


if __name__ == "__main__":
    main()
