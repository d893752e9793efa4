"""The agent as a worker without walls: `belljar-agent serve` on a socket, for sandboxes and for frames by hand."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from belljar import Sandbox
from belljar.abi.base import environment
from belljar.abi.wire import HostMessage, WorkerMessage, encode, worker_frames
from belljar.owner.handle_host import WorkerHandle
from belljar.owner.supervisor_host import shared

SANITIZED = ("-g", "-O1", "-std=c11", "-D_GNU_SOURCE", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def sanitized_agent(place: Path) -> Path:
    """The agent built by gcc, so that it aborts at a mistake with memory or arithmetic."""
    from belljar.native.agent_build_host import HERE

    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no gcc")
    made = place / "belljar-agent-sanitized"
    if not made.exists():
        options = place / "options.c"
        options.write_text(
            'const char *__asan_default_options(void) { return "detect_leaks=0:exitcode=77"; }\n'
            'const char *__ubsan_default_options(void) { return "exitcode=77"; }\n'
        )
        sources = map(str, [*HERE.glob("*.c"), options])
        subprocess.run([compiler, *SANITIZED, "-o", str(made), *sources, "-lm"], check=True)
    return made


class Agent(WorkerHandle):
    """The process at work. Its end is that of the connection, so that it ends all that it started."""

    def __init__(self, program: Path) -> None:
        self.directory = tempfile.mkdtemp(prefix="belljar-agent-")
        ours, theirs = socket.socketpair()
        with theirs:
            number = theirs.fileno()
            words = ["bash", "-c", f'exec "$0" serve "$1" 3<&{number} {number}<&-', str(program), self.directory]
            self.process = subprocess.Popen(
                words, pass_fds=[number], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
            )
        self.ended = False
        super().__init__(self.process.pid, os.pidfd_open(self.process.pid), ours)

    def end(self) -> None:
        if self.ended:
            return
        self.ended = True
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
        try:
            _, self.said = self.process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            _, self.said = self.process.communicate()
        os.close(self.pidfd)
        self.pidfd = -1
        shutil.rmtree(self.directory)
        assert (self.process.returncode, self.said) == (0, b""), "the agent crashed"


class Talk:
    """Frames to an agent, and from it."""

    def __init__(self, agent: Agent) -> None:
        self.connection = agent.connection
        self.pid = agent.process.pid
        self.connection.settimeout(60)
        self._frames = worker_frames()
        self._heard: list[WorkerMessage] = []

    def say(self, *messages: HostMessage) -> None:
        self.connection.sendall(b"".join(map(encode, messages)))

    def hear(self) -> WorkerMessage | None:
        """The next message; None at the end."""
        while not self._heard:
            try:
                data = self.connection.recv(1 << 20)
            except ConnectionResetError:
                return None
            if not data:
                return None
            self._heard += self._frames.feed(data)
        return self._heard.pop(0)


@contextmanager
def talk(program: Path) -> Iterator[Talk]:
    agent = Agent(program)
    try:
        yield Talk(agent)
    finally:
        agent.kill()


@contextmanager
def sandbox(program: Path, **options: Any) -> Iterator[Sandbox]:
    """A sandbox whose worker is the agent."""
    with patch.object(shared, "take", lambda _memory: Agent(program)):
        made = Sandbox(**{"cwd": tempfile.gettempdir(), "env": environment(), **options})
    with made:
        yield made
