"""diod, a 9P server and its clients, from Debian's packages."""

from __future__ import annotations

import os
import platform
import socket
import subprocess
from pathlib import Path
from pwd import getpwuid
from typing import Any

import pytest

from belljar.abi.errors import SysError
from belljar.kernel.fs import ninep_wire as wire
from belljar.kernel.fs.ninep import NinePServer
from belljar.kernel.fs.ninep_link import MESSAGE
from tests.debian import Unreachable, install

PACKAGES = {
    "d/diod/diod_1.0.24-5_amd64.deb": "cd78f55e91d68ee84496f3738eed4c4f048941710cd280433a12cc548e5f1bd1",
    "t/tcp-wrappers/libwrap0_7.6.q-32_amd64.deb": "cbce2669a3ba4d74cfdc52b14f38014893e23d85a33d109a3422c342eefc55f8",
    "l/lua5.1/liblua5.1-0_5.1.5-9_amd64.deb": "5400fac99da7aba50ce4703bdee23c29fdf1acc619cd6c2c312589a4a7e69c71",
    "m/munge/libmunge2_0.5.15-2+deb12u1_amd64.deb": "533a38220c7f2a38a1130f5f80033d1a07723880fa352299b22a10ba99ce826e",
}


def _place(name: str) -> str | None:
    path = Path(name)
    if path.parts[-2:-1] == ("sbin",) and path.name.startswith("diod"):
        return f"bin/{path.name}"
    return f"lib/{path.name}" if ".so." in path.name else None


def program(name: str) -> tuple[str, dict[str, str]]:
    """A program of the package and the environment it needs, or the test is skipped."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        pytest.skip("the packages are for Linux on x86-64")
    try:
        place = install("diod-1", PACKAGES, _place)
    except Unreachable as error:
        pytest.skip(f"diod could not be fetched from Debian: {error}")
    return str(place / "bin" / name), {**os.environ, "LD_LIBRARY_PATH": str(place / "lib")}


def client(name: str, path: str, *words: str) -> subprocess.CompletedProcess[bytes]:
    """Run `diodcat` or `diodls` against a server of ours."""
    command, environment = program(name)
    return subprocess.run(
        [command, "-s", path, "-a", "/", *words], env=environment, capture_output=True, timeout=60, check=False
    )


class DiodServer(NinePServer):
    """A directory, served by diod over a socket pair."""

    def __init__(self, top: Path) -> None:
        command, environment = program("diod")
        self._ours, theirs = socket.socketpair()
        fd = str(theirs.fileno())
        self._process = subprocess.Popen(
            [command, "-f", "-r", fd, "-w", fd, "-e", str(top), "-n", "-L", "stderr", "-c", "/dev/null"],
            env=environment, pass_fds=[theirs.fileno()], stderr=subprocess.DEVNULL,
        )  # fmt: skip
        theirs.close()
        self._ours.settimeout(60)
        self._frames = wire.Frames()
        try:
            super().__init__(self._request, MESSAGE, getpwuid(os.geteuid()).pw_name, str(top))
        except BaseException:
            self.close()
            raise

    def _request(self, name: str, *values: Any) -> tuple[Any, ...]:
        tag = wire.NOTAG if name == "Tversion" else 7
        self._ours.sendall(wire.encode(name, tag, *values))
        found: list[bytes] = []
        while not found:
            data = self._ours.recv(1 << 20)
            assert data, "diod hung up"
            found = self._frames.feed(data)
        answer = wire.decode(found[0])
        if answer.name == "Rlerror":
            raise SysError(answer.values[0])
        assert answer.name == "R" + name[1:]
        return answer.values

    def close(self) -> None:
        self._ours.close()
        self._process.kill()
        self._process.wait()
