"""An image's own Python behind `sandbox.python`: what the battery of all tiers does not say."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from belljar import EngineUnavailable, RunLimits, Sandbox
from belljar.native.python_host import python_program
from tests.native.conftest import needs_native

pytestmark = needs_native


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(tier="native") as sandbox:
        yield sandbox


def test_it_is_the_images(sandbox: Sandbox) -> None:
    executable, version = sandbox.python.run("import sys\nsys.executable, list(sys.version_info[:2])").value
    assert executable == "/usr/bin/python3"
    assert f"Python {version[0]}.{version[1]}." in sandbox.exec("python3 --version").stdout


def test_threads_and_children(sandbox: Sandbox) -> None:
    code = """
import subprocess, threading
said = []
threads = [threading.Thread(target=said.append, args=(n,)) for n in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
sorted(said), subprocess.run("ls /proc/self/fd | wc -l", shell=True, capture_output=True, text=True).stdout
"""
    numbers, descriptors = sandbox.python.run(code).value
    assert numbers == [0, 1, 2, 3]
    assert int(descriptors) == 4  # the control channel is not inherited; one is that of ls


def test_what_its_start_takes_is_not_the_runs() -> None:
    """In a machine without KVM, or on a busy one, it takes many seconds of processor time."""
    files = {"/workspace/sitecustomize.py": "import time\nwhile time.process_time() < 1: pass\n"}
    with Sandbox(tier="native", files=files, env={"PYTHONPATH": "/workspace"}) as sandbox:
        assert sandbox.python.run("x = 1; x", limits=RunLimits(cpu_ms=500)).check().value == 1
        for _ in range(2):  # the second has to start anew
            error = sandbox.python.run("while True: pass", limits=RunLimits(cpu_ms=500)).error
            assert error is not None
            assert error.code == "CPU_LIMIT"


def test_memory_of_a_library_counts(sandbox: Sandbox) -> None:
    code = (
        "import ctypes\nctypes.CDLL(None).malloc.restype = ctypes.c_void_p\nctypes.CDLL(None).malloc(300 << 20) is None"
    )
    assert sandbox.python.run(code, limits=RunLimits(memory_mb=64)).ok
    error = sandbox.python.another().run("b'x' * (300 << 20)", limits=RunLimits(memory_mb=64)).error
    assert error is not None
    assert error.code == "MEMORY_LIMIT"


def test_classes_and_closures_are_saved_without_cloudpickle() -> None:
    code = """
import enum
class Base:
    kind = "base"
    def name(self): return self.kind + type(self).__name__
class Point(Base):
    __slots__ = ("x",)
    def __init__(self, x): self.x = x
    @property
    def double(self): return self.x * 2
    @staticmethod
    def one(): return Point(1)
def counter():
    n = [0]
    def up():
        n[0] += 1
        return n[0]
    return up
def even(n): return n == 0 or odd(n - 1)
def odd(n): return n != 0 and even(n - 1)
up = counter(); up()
p = Point(4)
"""
    with Sandbox(tier="native") as first, Sandbox(tier="native") as second:
        assert first.python.run(code).ok
        saved = first.python.save()
        assert saved.left_out == {}
        assert second.python.load(saved) == {}
        value = second.python.run("p.double, p.name(), Point.one().x, up(), up(), even(10), isinstance(p, Base)").value
        assert value == [8, "basePoint", 1, 2, 3, True, True]


def test_runs_of_a_prefix_at_once(sandbox: Sandbox) -> None:
    prefix = sandbox.python.precompile("import random, os\nx = [1]", globals={"double": lambda n: n * 2})
    values: list[object] = []

    def one(n: int) -> None:
        values.append(prefix.run(f"x.append({n}); double(x[-1])").value)

    runs = [threading.Thread(target=one, args=(n,)) for n in range(6)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert sorted(map(str, values)) == sorted(str(n * 2) for n in range(6))
    draws = {prefix.run("random.random()").value for _ in range(3)}
    assert len(draws) == 3
    prefix.close()


def test_nothing_of_a_run_is_left(sandbox: Sandbox) -> None:
    prefix = sandbox.python.precompile("import subprocess, time")
    before = sandbox.stats()["processes"]
    error = prefix.run("subprocess.Popen(['sleep', '1000'])\ntime.sleep(1000)", limits=RunLimits(wall_ms=400)).error
    assert error is not None
    assert error.code == "WALL_LIMIT"
    assert prefix.run("import os; os._exit(3)").error is not None
    assert prefix.run("1 + 1").value == 2
    for _ in range(100):
        if sandbox.stats()["processes"] <= before:  # what an earlier test left may have been counted
            break
        sandbox.exec("sleep 0.05")
    assert sandbox.stats()["processes"] <= before
    prefix.close()


def test_an_image_without_python(tmp_path: Path) -> None:
    from belljar import Image

    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    (root / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\n")
    with (
        Sandbox(tier="native", image=Image.directory(str(root))) as bare,
        pytest.raises(EngineUnavailable, match=r"python3: command not found\. Take an image that has python3"),
    ):
        bare.python.run("1")


def test_the_program_fits_an_argument() -> None:
    """Linux takes 128 KiB, with what comes after it."""
    assert len(python_program()) < 64 << 10
    compile(python_program(), "begin", "exec")
