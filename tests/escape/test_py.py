"""THREATS.md 97-108: a guest's Python against its interpreter, the kernel's calls, and the host behind them."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from belljar import ExecResult, Limits, RunLimits, Sandbox
from belljar.engines.artefact_host import ArtefactError, open_checked
from tests.escape.oracles import Watch

pytestmark = pytest.mark.slow
WALL = 20.0


@pytest.fixture(scope="module")
def jail() -> Iterator[Sandbox]:
    with Sandbox(limits=Limits(cpu_seconds=2, wall_seconds=WALL, memory_bytes=512 << 20, output_bytes=1 << 20)) as made:
        made.exec("python3 -c 1").check()
        yield made


def attack(watch: Watch, jail: Sandbox, code: str) -> ExecResult:
    """One program: whatever comes of it, the host is as before, nothing of it was seen, and the next program runs."""
    with watch.attack():
        began = time.monotonic()
        result = jail.exec(["python3", "-c", watch.fill(code)])
        assert time.monotonic() - began < WALL + 10
        # A guest's own traceback, its own packages' directory and its own words are its business.
        own = (b"Traceback (most recent call last)", b"/usr/local/lib/python3.15/site-packages", bytes(watch.canary))
        told = result.stdout_bytes + result.stderr_bytes
        for word in own:
            told = told.replace(word, b"")
        watch.check_bytes(told)
        assert jail.exec(["python3", "-c", "print(6 * 7)"]).stdout == "42\n"
    return result


REFUSED = {
    "97 ctypes": "import ctypes; ctypes.CDLL(None).getpid()",
    "97 _ctypes": "import _ctypes; _ctypes.dlopen('/lib/x86_64-linux-gnu/libc.so.6', 0)",
    "97 socket": "import socket; socket.create_connection(('127.0.0.1', {port}), 2)",
    "97 datagram": "from socket import *; socket(AF_INET, SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {port}))",
    "97 unix socket": "import socket; socket.socket(socket.AF_UNIX).connect('/var/run/docker.sock')",
    "97 urllib": "import urllib.request; urllib.request.urlopen('http://127.0.0.1:{port}/', timeout=2)",
    "97 multiprocessing": "from multiprocessing import Process as P; p = P(target=print); p.start(); p.join(); 1 / 0",
    "97 resource": "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (10**9, 10**9))",
    "98 fork": "import os; os.fork()",
    "98 forkpty": "import os; os.forkpty()",
    "98 kill init": "import os; os.kill(1, 9)",
    "98 kill the owner": "import os; [os.kill(n, 9) for n in range(2, 4000) if n != os.getpid()]; 1 / 0",
    "98 exec of a host file": "import subprocess; subprocess.run(['{canary}'], check=True)",
    "98 command of the host": "import os; assert os.system('cat {canary}') == 0",
    "99 canary": "print(open('{canary}').read())",
    "99 canary by climbing": "print(open('../' * 60 + '{canary}').read())",
    "99 maps": "assert 'wasmtime' in open('/proc/self/maps').read()",
    "99 mem": "f = open('/proc/self/mem', 'rb'); f.seek(4096); f.read(16)",
    "99 init's root": "print(open('/proc/1/root{canary}').read())",
    "99 link": "import os; os.symlink('{canary}', '/tmp/l'); print(open('/tmp/l').read())",
    "99 dir_fd": "import os; d = os.open('/', os.O_RDONLY); print(os.open('../../{canary}', os.O_RDONLY, dir_fd=d))",
    "107 number": "import os; os.read(3, 10)",
    "107 far number": "import os; os.read(10**6, 10)",
    "107 directory as a file": "import os; os.write(os.open('/', os.O_RDONLY), b'x')",
}


@pytest.mark.parametrize("name", REFUSED)
def test_is_refused(watch: Watch, jail: Sandbox, name: str) -> None:
    result = attack(watch, jail, REFUSED[name])
    assert result.exit_code != 0, result.stdout


def test_99_no_way_up(watch: Watch, jail: Sandbox) -> None:
    code = """
import os
for _ in range(100):
    os.chdir('..')
print(os.getcwd(), sorted(os.listdir('.')) == sorted(os.listdir('/')))
"""
    assert attack(watch, jail, code).stdout == "/ True\n"


def test_100_every_object_is_the_guests_own(watch: Watch, jail: Sandbox) -> None:
    walk = """
import gc, os, sys
texts = {o for o in gc.get_objects() if isinstance(o, str)} | set(map(repr, sys.modules)) | set(os.environ.values())
def names(kind, depth=0):
    below = [c for c in kind.__subclasses__() if c is not type]
    return {c.__module__ for c in below}.union(*(names(c, depth + 1) for c in below if depth < 3))
found = names(().__class__.__base__)
frame = sys._getframe()
while frame.f_back: frame = frame.f_back
texts |= {str(v) for v in frame.f_globals.values()}
ours = [m for m in found if m.startswith(('belljar', 'wasmtime', 'msgspec'))]
print(any('CANARY' in t for t in texts), ours, len(found) > 20)
"""
    assert attack(watch, jail, walk).stdout == "False [] True\n"


def test_101_what_the_guest_pickles_is_bytes_to_the_host(watch: Watch, jail: Sandbox) -> None:
    code = """
import pickle
class Evil:
    def __reduce__(self):
        return eval, ("__import__('os').system('touch {canary}.x')",)
open('/tmp/p', 'wb').write(pickle.dumps(Evil()))
"""
    assert attack(watch, jail, code).exit_code == 0
    data = jail.files.read_bytes("/tmp/p")
    assert data.startswith(pickle.PROTO)
    source = Path(__file__).parents[2] / "src/belljar"
    guests = source / "engines/python/guest"
    for path in source.rglob("*.py"):
        assert "pickle.load" not in path.read_text() or path.is_relative_to(guests), path


LIMITED = {
    "102 recursion": ("import sys; sys.setrecursionlimit(10**9)\ndef f(): return f()\nf()", None),
    "102 recursion in C": (
        "import sys; sys.setrecursionlimit(10**9)\nx = []\nfor _ in range(10**6): x = [x]\nrepr(x)",
        None,
    ),
    "103 one large object": ("x = bytearray(8 << 30)", None),
    "103 a large text": ("x = 'x' * 10**10", None),
    "103 growing for ever": ("x = []\nwhile True: x.append(bytearray(1 << 20))", None),
    "104 endless loop": ("while True: pass", "cpu_seconds"),
    "104 endless comprehension": ("[1 for _ in iter(int, 1)]", None),
    "104 backtracking": ("import re; re.match('(a+)+$', 'a' * 64 + 'b')", "cpu_seconds"),
    "104 large power": ("9 ** 9 ** 9", "cpu_seconds"),
    "104 caught": ("while True:\n    try:\n        while True: pass\n    except BaseException: pass", "cpu_seconds"),
    "104 sleeping": ("import time; time.sleep(10**6)", "wall_seconds"),
    "98 processes without end": (
        "import subprocess, sys\nwhile True: subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])",
        None,
    ),
    "107 output without end": ("import os\nwhile True: os.write(1, b'x' * 65536)", "output_bytes"),
    "107 entropy without end": ("import os\nwhile True: os.urandom(1 << 16)", "cpu_seconds"),
}


@pytest.mark.battery(sample=4)
@pytest.mark.parametrize("name", LIMITED)
def test_is_limited(watch: Watch, jail: Sandbox, name: str) -> None:
    code, limit = LIMITED[name]
    result = attack(watch, jail, code)
    assert result.exit_code != 0
    if limit is not None:
        assert result.limit == limit


def test_104_in_a_session_too(watch: Watch, jail: Sandbox) -> None:
    with watch.attack():
        result = jail.python.run("while True: pass", limits=RunLimits(cpu_ms=300))
        assert result.error is not None
        assert result.error.code == "CPU_LIMIT"
        assert jail.python.run("1").value == 1
        jail.python.reset()


def test_100_a_session_can_not_be_talked_out_of_its_limits(watch: Watch, jail: Sandbox) -> None:
    """The guest's half of the engine is the guest's: what it knows gives it no right."""
    code = """
from _belljar import hostcalls
for number in range(990, 1010):
    try:
        print(number, hostcalls.exchange(number, b'x' * 64)[0] != 0)
    except BaseException as error:
        print(number, type(error).__name__)
while True: pass
"""
    with watch.attack():
        result = jail.python.run(code, limits=RunLimits(cpu_ms=500))
        assert result.error is not None
        assert result.error.code in ("CPU_LIMIT", "CRASHED")
        watch.check_bytes(result.stdout.encode() + result.stderr.encode())
        jail.python.reset()


def test_108_a_compiled_interpreter_that_is_not_ours_is_refused(tmp_path: Path) -> None:
    forged = tmp_path / "x.cwasm"
    forged.write_bytes(b"\x7fELF" + bytes(100))
    with pytest.raises((ArtefactError, OSError)), open_checked(forged):
        pass
    forged.with_suffix(".mac").write_bytes(bytes(32))
    with pytest.raises((ArtefactError, OSError)), open_checked(forged):
        pass
