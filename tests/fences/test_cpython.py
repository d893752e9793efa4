"""Every place that depends on how CPython (or a package) works inside, and a check that it still works so.

A new place fails the last test until it is named here with its check.
"""

from __future__ import annotations

import ctypes
import gc
import importlib.util
import inspect
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

from belljar.abi.dataclass import dataclass, fields

SOURCE = Path(__file__).parents[2] / "src" / "belljar"


def check_fork_without_hooks() -> None:
    """fork(2) called through ctypes runs no at-fork hooks, and both sides go on with the interpreter lock held."""
    run(
        "import os, sys; from belljar.lockdown.forks_host import fork_alone\n"
        "os.register_at_fork(after_in_child=lambda: os._exit(9))\n"
        "pid = fork_alone()\n"
        "if pid == 0: os._exit(len([0] * 7))\n"
        "sys.exit(0 if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7 else 1)"
    )


def check_deep_recursion() -> None:
    """Python functions that call each other 50,000 deep need no C stack."""
    run("import sys; sys.setrecursionlimit(60_000)\ndef f(n): return n and 1 + f(n - 1)\nassert f(50_000) == 50_000")


def check_signals_interrupt_re() -> None:
    """An exception raised by a signal handler ends a pattern that backtracks."""
    run(
        "import re, signal\nclass Over(BaseException): pass\n"
        "def over(*_): raise Over\n"
        "signal.signal(signal.SIGPROF, over); signal.setitimer(signal.ITIMER_PROF, 0.05)\n"
        "try: re.match(r'(a+)+$', 'a' * 60 + 'b')\nexcept Over: pass\nelse: raise SystemExit('not interrupted')"
    )


def check_handlers_see_the_frame() -> None:
    """A signal handler is given the frame that it interrupts, and frames lead to their callers."""
    frame = inspect.currentframe()
    assert isinstance(frame, types.FrameType)
    assert isinstance(frame.f_back, types.FrameType)
    assert "__name__" in frame.f_globals


def check_compiled_files() -> None:
    """A .pyc begins with a magic number of 4 bytes, then 12 that say what it was made from."""
    assert len(importlib.util.MAGIC_NUMBER) == 4
    cached = importlib.util.cache_from_source(inspect.__file__)
    code = Path(cached).read_bytes() if Path(cached).exists() else importlib.util.MAGIC_NUMBER
    assert code[:4] == importlib.util.MAGIC_NUMBER


def check_annotations() -> None:
    """A class gives its own annotations, in order, and msgspec makes fields of them."""

    @dataclass(frozen=True)
    class Point:
        x: int
        y: int = 2

    @dataclass(frozen=True)
    class Further(Point):
        z: int = 3

    assert [field.name for field in fields(Further)] == ["x", "y", "z"]
    assert Further(1) == Further(1, 2, 3)


def check_coroutine_flag() -> None:
    async def function() -> None: ...

    assert function.__code__.co_flags & 0x80 == inspect.CO_COROUTINE


def check_freezing() -> None:
    """gc.freeze() sets aside what there is, so that collections don't write to it."""
    run("import gc; gc.collect(); gc.freeze(); assert gc.get_freeze_count() > 1000; gc.unfreeze()")
    assert gc.isenabled()


def check_small_modules() -> None:
    """`_socket` and `_thread` are there, with what `socket` and `threading` make of them."""
    import _socket
    import _thread

    assert callable(_socket.socket)
    assert callable(_thread.start_new_thread)
    assert callable(_thread.allocate_lock)
    assert callable(_thread.interrupt_main)


def check_wasmtime() -> None:
    """wasmtime-py's C functions are reachable by ctypes."""
    pytest.importorskip("wasmtime")
    from wasmtime import _ffi, _instance

    assert isinstance(_ffi.dll, ctypes.CDLL)
    assert hasattr(_ffi.dll, "wasmtime_linker_define_func_unchecked")
    assert isinstance(_instance.InstanceExports, type)


PLACES = {
    r"ctypes\.PyDLL": (check_fork_without_hooks, {"lockdown/forks_host.py"}),
    r"setrecursionlimit": (
        check_deep_recursion,
        # In a page it is lowered.
        {"zygote_host.py", "spawned_host.py", "bin/_kit/cstack.py", "inside/main_host.py"},
    ),
    r"signal\.setitimer|SIGPROF": (check_signals_interrupt_re, {"kernel/cpu_guard_host.py"}),
    r"\bf_back\b|sys\._getframe": (check_handlers_see_the_frame, {"kernel/cpu_guard_host.py", "bin/_kit/cstack.py"}),
    r"MAGIC_NUMBER": (check_compiled_files, {"archive_host.py"}),
    r"__annotations__": (check_annotations, {"abi/dataclass.py", "api/settings.py"}),
    r"co_flags": (check_coroutine_flag, {"api/command.py"}),
    r"gc\.freeze": (
        check_freezing,
        {"zygote_host.py", "spawned_host.py", "template_host.py", "tool_host.py", "start_host.py"},
    ),
    r"import _socket|import _thread|from _thread": (
        check_small_modules,
        {"launch_host.py", "shared_host.py", "watch_host.py", "cpu_guard_host.py"},
    ),
    r"wasmtime import _|wasmtime\._": (check_wasmtime, {"linker_host.py", "machine_host.py", "template_host.py"}),
}
"""What is looked for in the source: the check that goes with it, and the ends of the paths where it may be."""

ELSEWHERE = r"\bco_code|getrefcount|pythonapi|\bpy_object|_PyObject|ob_refcnt|gr_frame|__code__ ="
"""What nobody does."""


def run(program: str) -> None:
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.mark.parametrize("pattern", PLACES)
def test_it_works_so(pattern: str) -> None:
    check, _places = PLACES[pattern]
    try:
        check()
    except (AssertionError, subprocess.CalledProcessError) as error:
        version = ".".join(map(str, sys.version_info[:3]))
        pytest.fail(f"Python {version}: an assumption does not hold: {check.__doc__ or check.__name__} ({error})")


def sources() -> list[tuple[str, str]]:
    """Our own code, by path; that of the guest's interpreter is pinned to its version."""
    files = [path for path in SOURCE.rglob("*.py") if "guest" not in path.relative_to(SOURCE).parts[:-1]]
    return [(path.relative_to(SOURCE).as_posix(), path.read_text()) for path in files]


@pytest.mark.parametrize("pattern", PLACES)
def test_every_place_is_named(pattern: str) -> None:
    _check, places = PLACES[pattern]
    found = {path for path, text in sources() if re.search(pattern, text)}
    assert {path for path in found if not path.endswith(tuple(places))} == set(), "name it in PLACES, with a check"
    assert {place for place in places if not any(path.endswith(place) for path in found)} == set(), "no longer there"


def test_nothing_else_looks_inside() -> None:
    assert [path for path, text in sources() if re.search(ELSEWHERE, text)] == []
