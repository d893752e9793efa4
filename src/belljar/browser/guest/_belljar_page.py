"""Makes a Pyodide in a worker the `python3` of a sandbox: `prepare` while it waits, `run` when there is a program."""

import gc
import io
import json
import sys
from importlib.machinery import ModuleSpec, SourcelessFileLoader
from importlib.util import module_from_spec

LIBRARY = "/lib/python314.zip"
GUEST = "/lib/belljar-guest"
REPLACED = ("_posixsubprocess", "fcntl", "grp", "pwd", "resource", "termios")
"""Modules that Pyodide has built in, without a kernel behind them."""
RECURSION = 900
"""Python frames: V8's stack is shorter than CPython's own limit allows for."""


def prepare():
    """Load what every program needs."""
    from _belljar import files

    files.LIBRARY, files.PACKAGES, files.OWN = LIBRARY, GUEST, ("/lib/",)  # before others take them from there
    from _belljar import errors, socket_module

    for name in REPLACED:
        loader = SourcelessFileLoader(name, f"{GUEST}/{name}.pyc")
        module = sys.modules[name] = module_from_spec(ModuleSpec(name, loader, origin=loader.path))
        loader.exec_module(module)
    forget_webloop()
    socket_module.install()
    errors.install()
    from _belljar import loops, main, pools, shims, tools

    main.OWN = "_belljar"
    shims.install()
    loops.install()
    pools.install()
    tools.install()
    sys.platform = "linux"
    sys.setrecursionlimit(RECURSION)
    gc.collect()
    gc.freeze()
    main._template.update(modules=frozenset(sys.modules), last=next(reversed(sys.modules)))


def forget_webloop():
    """Have sockets and asyncio be loaded anew: those that Pyodide has changed lead to the page."""
    import _asyncio

    _asyncio._set_running_loop(None)
    for name in [name for name in sys.modules if name.partition(".")[0] in ("asyncio", "selectors", "socket", "ssl")]:
        del sys.modules[name]


def run(started):
    """Run the program that START describes. Does not return."""
    from _belljar import main

    argv, environment, cwd, options, numbers, descriptors = started
    engine = json.loads(options)
    engine["closed"] = sum(1 << fd for fd in range(3) if descriptors[2 * fd] == 0)
    engine["terminal"] = bool(numbers[5] & 1)
    make_streams(engine["closed"])
    main.run((list(map(bytes, argv)), list(map(bytes, environment)), bytes(cwd), engine, list(numbers)))


def make_streams(closed):
    """Standard streams over the kernel's descriptors: those that Pyodide made are the page's."""
    for fd, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if closed >> fd & 1:
            continue
        raw = io.FileIO(fd, mode, closefd=False)
        buffer = io.BufferedReader(raw) if fd == 0 else io.BufferedWriter(raw)
        errors = "backslashreplace" if fd == 2 else "surrogateescape"
        stream = io.TextIOWrapper(buffer, "utf-8", errors, line_buffering=fd == 2)
        stream.mode = mode
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
