"""A server in a process of its own, for tests."""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

WHOLE = os.environ.get("BELLJAR_WHOLE") == "1"


def both(cases: list[Callable[[Any], Any]]) -> list[Any]:
    """Each case with both SDKs; without BELLJAR_WHOLE=1, with one of them in turn."""
    pairs = [(function, which) for function in cases for which in ("sync", "async")]
    chosen = pairs if WHOLE else [pair for place, pair in enumerate(pairs) if place % 4 in (0, 3)]
    return [pytest.param(function, which, id=f"{function.__name__}-{which}") for function, which in chosen]


_PROGRAM = """
import ctypes, runpy, signal
ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
runpy.run_module("belljar.cli", run_name="__main__", alter_sys=True)
"""
"""`python -m belljar.cli`, which does not outlive a test process that is killed."""


class Server:
    """`belljar serve` on a free port; its store and its file are in `directory`."""

    def __init__(self, directory: Path, *options: str, store: bool = True, port: int = 0) -> None:
        self.directory = directory
        self.options = options
        self.store = store
        self.key = ""
        self.url = ""
        self.said: list[str] = []
        self.logged: list[str] = []
        self.process: subprocess.Popen[str] | None = None
        self.start(port)

    def start(self, port: int = 0) -> None:
        if self.process is not None:
            self._close()
        where = ["--store", str(self.directory / "store.db")] if self.store else []
        command = [sys.executable, "-c", _PROGRAM, "serve", "--port", str(port), *where, *self.options]
        self.process = process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=_environment()
        )
        assert process.stdout is not None
        self.url = ""
        self.said = []
        for line in process.stdout:
            self.said.append(line)
            if found := re.search(r"belljar serves at (\S+)", line):
                self.url = found[1]
            if found := re.search(r"API key: (bj_\w+)", line):
                self.key = found[1]
            if line.startswith("Stop it"):
                break
        else:
            assert process.stderr is not None
            raise AssertionError(process.stderr.read())
        threading.Thread(target=self._read_log, args=(process,), daemon=True).start()

    def _read_log(self, process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None
        with process.stderr:
            self.logged.extend(process.stderr)

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    @property
    def environment(self) -> dict[str, str]:
        """What the stock SDKs are told."""
        return {"E2B_API_KEY": self.key, "E2B_API_URL": self.url, "E2B_SANDBOX_URL": self.url}

    def new_key(self, tenant: str, *options: str) -> str:
        return self.cli("key", "create", "--tenant", tenant, *options).stdout.strip()

    def cli(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [
            sys.executable,
            "-m",
            "belljar.cli",
            "serve",
            *arguments,
            "--store",
            str(self.directory / "store.db"),
        ]
        return subprocess.run(command, capture_output=True, text=True, check=True, env=_environment())

    def request(self, method: str, path: str, *, key: str | None = None, **options: Any) -> httpx.Response:
        headers = {"X-API-KEY": self.key if key is None else key, **options.pop("headers", {})}
        return httpx.request(method, self.url + path, headers=headers, timeout=30, **options)

    def create(self, **wish: Any) -> dict[str, Any]:
        """A sandbox, by the control API."""
        answer = self.request("POST", "/v2/sandboxes", json={"templateID": "base", **wish})
        assert answer.status_code == 201, answer.text
        made: dict[str, Any] = answer.json()
        return made

    def workers(self) -> list[int]:
        """Processes that the server has started, and those that came of them."""
        assert self.process is not None
        return descendants(self.process.pid)

    def kill(self) -> None:
        """As a crash would."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        self._close()

    def stop(self, seconds: float = 90.0) -> int:
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(seconds)
        finally:
            self.process.kill()
            self._close()

    def _close(self) -> None:
        assert self.process is not None
        assert self.process.stdout is not None
        self.process.stdout.close()


_hosts = itertools.count(1)


def from_elsewhere() -> dict[str, str]:
    """Headers of a request from an address that has shown no wrong key yet.

    A server answers 429 to an address after thirty of them, and the tests that share it have the same one.
    """
    return {"X-Forwarded-For": f"192.0.2.{next(_hosts)}"}


def _environment() -> dict[str, str]:
    """Without what would have the SDKs, or the server, be elsewhere."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("E2B_", "COVERAGE"))}


def children(pid: int) -> list[int]:
    return _children_of_all().get(pid, [])


def descendants(pid: int) -> list[int]:
    parents = _children_of_all()
    found = []
    waiting = [pid]
    while waiting:
        below = parents.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def _children_of_all() -> dict[int, list[int]]:
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
            parents.setdefault(parent, []).append(int(entry.name))
    return parents


def are_gone(pids: list[int], seconds: float = 60.0) -> bool:
    """Whether these processes end within so many seconds."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if not any(_lives(pid) for pid in pids):
            return True
        time.sleep(0.05)
    return False


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
