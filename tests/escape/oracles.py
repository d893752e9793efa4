"""What must hold after every attack, whatever it was: the five oracles of THREATS.md part 1."""

from __future__ import annotations

import base64
import gc
import getpass
import os
import socket
import sys
import threading
import time
import urllib.parse
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from belljar import Sandbox
from belljar.api.templates_host import templates
from belljar.engines.owner import template_host
from belljar.forking.owner.process_host import ForkServerProcess
from belljar.owner.supervisor_host import replaying, shared
from tests.engines import js_engines

needs_own_descriptors = pytest.mark.skipif(
    os.geteuid() != 0 and int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")) > 1,
    reason="descriptors on their way count for all of a user's processes, and only root can have a user of its own",
)
GROWTH = 32 << 20
ANSWER_SECONDS = 15.0
"""An `echo` of another sandbox takes a millisecond; this much is for a machine with eight others at work."""


def resident() -> int:
    """Bytes of memory that this process really has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def server_files() -> set[int]:
    """Descriptors of the zygotes and engine templates of this process.

    They start when first needed, and again when a test has ended them: no case is to be blamed for that.
    """
    of_engines = [*template_host._templates.values(), *js_engines._kept.values()]
    servers: list[ForkServerProcess[Any] | None] = [shared.zygote, replaying.zygote]
    servers += [each._server.process for each in of_engines]
    found: set[int] = set()
    for server in filter(None, servers):
        errors = server.process.stderr
        found |= {server._control.fileno(), -1 if errors is None or errors.closed else errors.fileno()}
    return found


def growth(before: int) -> int:
    """Bytes by which this process has grown for good: garbage, and what threads of others use, goes within a while."""
    deadline = time.monotonic() + 10
    while (grown := resident() - before) >= GROWTH and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.1)
    return grown


def open_files() -> dict[int, str]:
    """What this process has open, but for `server_files`."""
    found = {}
    for fd in set(map(int, os.listdir("/proc/self/fd"))) - server_files():
        try:
            found[fd] = os.readlink(f"/proc/self/fd/{fd}")
        except FileNotFoundError:  # the directory that is being read
            continue
        except OSError as error:  # a path longer than can be told
            found[fd] = str(error)
    return found


def wait_for_spares() -> None:
    """Wait until the runs that prefixes make ahead are made: no case is to be blamed for their descriptors.

    Nor for those of the branches that templates of images make ahead, for an earlier test: there are to be no more.
    """
    templates.close()
    for thread in threading.enumerate():
        if thread.name == "belljar-runs":
            thread.join(30)


def check_open_files(before: dict[int, str], more: int = 0) -> None:
    """No more than these are open, once a thread that read for a sandbox, perhaps the last to let go, has done so."""
    deadline = time.monotonic() + 30
    while len(after := open_files()) > len(before) + more and time.monotonic() < deadline:
        time.sleep(0.01)
    left = sorted(set(after.items()) - set(before.items()))
    assert len(after) <= len(before) + more, f"descriptors were left open, of these: {left}"


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that ended and only waits for its parent does not."""
    return start_time(pid) > 0


def start_time(pid: int) -> int:
    """When a process that runs began, in ticks since the machine's start; 0 if there is none.

    It tells a process from a later one that was given the same pid.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    state, *figures = stat.rpartition(")")[2].split()
    return 0 if state in "ZX" else int(figures[18])


def wait_gone(pids: list[int], seconds: float = 30.0) -> list[int]:
    """Wait for processes to end; gives those that did not."""
    deadline = time.monotonic() + seconds
    while (alive := [pid for pid in pids if is_alive(pid)]) and time.monotonic() < deadline:
        time.sleep(0.01)
    return alive


class Watch:
    """A host with something to lose: a file, a variable, a listening port, another sandbox; and eyes on itself."""

    def __init__(self, directory: Path) -> None:
        self.secret = f"CANARY-{uuid.uuid4()}"
        self.canary = directory / "canary"
        self.canary.write_text(self.secret)
        self._directory = directory
        os.environ["BELLJAR_CANARY"] = self.secret
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.setblocking(False)
        self.port = int(self._listener.getsockname()[1])
        self.other = Sandbox()
        seen = self.other.exec("env; cat /etc/*; ls -lR /").stdout_bytes
        # What this process loads for the engines once stays: no case is to be blamed for that memory.
        self.other.exec("python3 -c '' && node -e ''").check()
        self.other.exec("cc --version; perl -e 1; ruby -e 1", timeout=120)  # where they are installed
        raw = self.secret.encode()
        self._forbidden = {
            raw,
            base64.b64encode(raw)[4:-4],
            raw.hex().encode(),
            urllib.parse.quote(self.secret, safe="").encode(),
            b"Traceback (most recent call last)",
            b"belljar/src",
            b"site-packages",
            *(
                word.encode()
                for word in (
                    str(directory),
                    sys.prefix,
                    str(Path(__file__).parent),
                    socket.gethostname(),
                    *(value for name, value in os.environ.items() if name != "_"),  # how we were started is no secret
                )
                if len(word) >= 8 and word.encode() not in seen
            ),
        }
        user = getpass.getuser()
        if user.encode() not in seen:
            self._forbidden.add(user.encode())

    def fill(self, text: str) -> str:
        return text.replace("{canary}", str(self.canary)).replace("{port}", str(self.port))

    @contextmanager
    def attack(self) -> Iterator[None]:
        """Oracles 1, 2 and 5 around what is done inside."""
        wait_for_spares()
        memory, open_before = resident(), open_files()
        yield
        assert self.canary.read_text() == self.secret, "the host's file was changed"
        assert sorted(os.listdir(self._directory)) == ["canary"], "something was made beside the host's file"
        try:
            connection, _ = self._listener.accept()
        except BlockingIOError:
            pass
        else:
            connection.close()
            raise AssertionError("the host's port was reached")
        began = time.monotonic()
        assert self.other.exec("echo ok").stdout == "ok\n", "another sandbox suffers"
        assert time.monotonic() - began < ANSWER_SECONDS, "another sandbox is slow"
        assert (grown := growth(memory)) < GROWTH, f"the owner grew by {grown} bytes"
        check_open_files(open_before)

    def check_bytes(self, data: bytes) -> None:
        """Oracle 3: nothing of the host is in what a guest can see; its own script is not told from output."""
        found = [word for word in self._forbidden if word in data]
        assert not found, f"the guest saw {found}"

    def close(self) -> None:
        del os.environ["BELLJAR_CANARY"]
        self._listener.close()
        self.other.close()
