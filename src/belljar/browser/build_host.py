"""Builds a page's directory: static files that any web server can serve, and a package of npm's layout.

belljar's modules are compiled by the Python that will run them. Each file has a compressed copy beside it, for servers
that send those.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

import msgspec

from belljar.abi.cache_host import draft_directory
from belljar.abi.install import install_hint
from belljar.abi.version import __version__
from belljar.browser.embedders_host import EMBEDDERS, check_origins
from belljar.browser.errors import BuildError
from belljar.browser.javascript_host import add_javascript
from belljar.browser.packages_host import unpack_packages
from belljar.browser.parts_host import MSGSPEC, PYODIDE, XTERM, XTERM_FIT, cache_place, fetch, unpack
from belljar.engines.errors import EngineUnavailable
from belljar.engines.owner.js_build_host import node
from belljar.libc.tzdata_host import names_file

_PAGE: Final = Path(__file__).parent / "page"
_SOURCES: Final = Path(__file__).parent.parent
_ROOMS: Final = (
    "abi",
    "bin",
    "browser/inside",
    "engines/wire",
    "engines/worker",
    "kernel",
    "libc",
    "net",
    "packages",
    "regex",
    "shell",
    "store",
    "worker",
)
"""Directories of modules that a page may need."""
_HOST_MODULES: Final = (
    "bin/sqlite3_host.py",
    "browser/inside/main_host.py",
    "kernel/cpu_guard_host.py",
    "libc/tzdata_host.py",
    "store/memory_host.py",
    "store/reader_host.py",
    "worker/descriptor_host.py",
)
"""Modules with a host's name that work in a page: what they use is there, or is not called."""
_PYODIDE_HAS: Final = ("__init__.py", "_curses.py", "_multiprocessing.py", "_ssl.py", "readline.py")
"""Modules of guest Python that Pyodide brings along, or that need a C library of WASI's."""
_PYODIDE_FILES: Final = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
_LIBRARY: Final = "pyodide/library.zip"
_GUEST_LIBRARY: Final = "/lib/python314.zip/"
"""Where guest Python has its library."""
NOT_THE_KERNELS: Final = tuple(
    (
        "__hello__. __phello__ _pydatetime. _pydecimal. _pyio. _pyrepl/ _sysconfigdata _ssl. antigravity. bdb. "
        "cProfile. cmd. code. colorsys. compileall. ctypes/ doctest. ensurepip/ filecmp. fileinput. ftplib. "
        "getpass. graphlib. idlelib/ imaplib. mailbox. modulefinder. multiprocessing/ optparse. pdb. pickletools. "
        "plistlib. poplib. profile. pstats. pty. pyclbr. pydoc. pydoc_data/ sched. shelve. smtplib. socketserver. "
        "ssl. symtable. tabnanny. this. timeit. tkinter/ trace. tty. turtle. turtledemo/ unittest/ venv/ wave. "
        "webbrowser. wsgiref/ xml/dom/ xml/etree/ xml/sax/ xmlrpc/ zipapp."
    ).split()
)
"""Of the standard library: what only guest programs use."""
PACKAGES: Final = ("dulwich", "packaging", "resolvelib")
"""For `git`, `pip` and `pkg`."""
UNUSED: Final = (
    *(
        f"dulwich/{name}"
        for name in (
            "__main__. aiohttp/ am. annotate. archive. bisect. cli. cloud/ contrib/ diff. diffstat. fastexport. "
            "filter_branch. lfs_server. log_utils. mailmap. maintenance. mbox. porcelain/ range_diff. rerere. server. "
            "stash. stripspace. subtree. tests/ web. whitespace."
        ).split()
    ),
    *(f"packaging/{name}" for name in "licenses/ metadata. pylock. dependency_groups. direct_url.".split()),
)
"""Of these packages: what `git`, `pip` and `pkg` do not use."""
_COMPRESSED: Final = (".mjs", ".wasm", ".bin", ".zip", ".json", ".html", ".css", ".js", ".svg", ".webmanifest")
_TIME: Final = (1980, 1, 1, 0, 0, 0)
_SECONDS: Final = 900


def build(
    directory: Path,
    *,
    compress: bool = True,
    packages: Sequence[str] = (),
    embedders: Sequence[str] = (),
    hear: Callable[[str], object] = lambda step: None,
) -> Path:
    """Build the page in a directory, which is replaced. BuildError.

    `packages` are for guest Python (packages_host.py); `embedders` are origins whose pages may use it by a bridge.
    `hear` is told what is made next.
    """
    if directory.exists() and any(directory.iterdir()) and not (directory / "belljar.mjs").exists():
        raise BuildError(f"{directory} has other files in it: name a new directory, or one that was built before")
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=draft_directory(directory.parent), prefix=".belljar-") as scratch:
        made = Path(scratch) / "page"
        hear("Pyodide")
        shutil.copytree(
            _PAGE, made, ignore=shutil.ignore_patterns("compile.mjs", "image.mjs", "loaded.mjs", "__pycache__")
        )
        unpack(fetch(PYODIDE), made, {name: f"pyodide/{name}" for name in _PYODIDE_FILES})
        _store(made / "pyodide/python_stdlib.zip")
        _compile_library(made)
        hear("the page's own modules")
        known = _forget_packages(made / "pyodide/pyodide-lock.json")
        unpack(fetch(XTERM), made, {"lib/xterm.mjs": "xterm/xterm.mjs", "css/xterm.css": "xterm/xterm.css"})
        unpack(fetch(XTERM_FIT), made, {"lib/addon-fit.mjs": "xterm/addon-fit.mjs"})
        modules = [*sources(), *_zones(), *_wheel(fetch(MSGSPEC), Path(scratch) / "msgspec")]
        for name in PACKAGES:
            modules += package(name)
        _compile(modules, made, made / "belljar.zip")
        hear("guest Python")
        build_guest(made, packages, known)
        _compile_loaded(made, Path(scratch))
        hear("guest JavaScript")
        add_javascript(made)
        _describe(made)
        (made / EMBEDDERS).write_text(json.dumps({"origins": check_origins(embedders)}) + "\n")
        _list_offline(made)
        if compress:
            hear("compressed copies")
            with ThreadPoolExecutor() as pool:
                list(pool.map(_compress, [path for path in sorted(made.rglob("*")) if path.suffix in _COMPRESSED]))
        if directory.exists():
            directory.rename(Path(scratch) / "replaced")  # at no moment is a part of a page there
        made.rename(directory)
    return directory


def build_guest(page: Path, packages: Sequence[str], known: Mapping[str, str]) -> None:
    """Put the modules of guest Python into a page, with packages. `known`: see unpack_packages(). BuildError."""
    with tempfile.TemporaryDirectory() as scratch:
        modules = [*guest_modules(), *_zones(), *unpack_packages(packages, Path(scratch), known)]
        _compile(modules, page, page / "guest.zip")


def sources() -> Iterator[tuple[str, Path]]:
    """The modules of a page: names in its library, and files."""
    for name in ("greenlet", "zstandard"):
        yield f"{name}.py", _SOURCES / f"browser/inside/{name}_alias.py"
    yield "belljar/__init__.py", _SOURCES / "__init__.py"
    yield "belljar/browser/__init__.py", _SOURCES / "browser/__init__.py"
    yield "belljar/engines/__init__.py", _SOURCES / "engines/__init__.py"
    for room in _ROOMS:
        for path in sorted((_SOURCES / room).rglob("*.py")):
            name = path.relative_to(_SOURCES).as_posix()
            if "broker" not in path.parts and (not name.endswith("_host.py") or name in _HOST_MODULES):
                yield f"belljar/{name}", path


def guest_modules() -> Iterator[tuple[str, Path]]:
    """The modules of guest Python: those of the native engine's guest, and what makes them at home on Pyodide."""
    guest = _SOURCES / "engines/python/guest"
    for path in sorted(guest.rglob("*.py")):
        name = path.relative_to(guest).as_posix()
        if name not in _PYODIDE_HAS:
            yield name, path
    yield "_belljar/protocol.py", _SOURCES / "engines/wire/calls.py"
    yield "_belljar/system.py", _SOURCES / "abi/system.py"
    yield "_belljar/values.py", _SOURCES / "abi/values.py"
    page = _SOURCES / "browser/guest"
    for name in ("_belljar_page.py", "_host.py"):
        yield name, page / name
    yield "_sysconfigdata__linux_wasm32-emscripten.py", page / "_sysconfigdata.py"


def _compile(
    modules: Iterable[tuple[str, Path]], made: Path, target: Path, *, level: int = 0, prefix: str = ""
) -> None:
    """An archive of modules, compiled, and of other files.

    `level`: how often `python -O` says O. `prefix`: what tracebacks show before a module's name.
    """
    with tempfile.TemporaryDirectory() as scratch:
        plain = Path(scratch) / "sources.zip"
        with zipfile.ZipFile(plain, "w") as archive:
            for inside, path in modules:
                archive.writestr(zipfile.ZipInfo(inside, _TIME), path.read_bytes())
        _run_node("compile.mjs", made / "pyodide", plain, target, level, prefix)


def _run_node(script: str, *arguments: object) -> str:
    """What a script of ours prints. BuildError."""
    try:
        command = [str(node()), str(_PAGE / script), *map(str, arguments)]
    except EngineUnavailable as error:
        raise BuildError(str(error)) from None
    done = subprocess.run(command, capture_output=True, timeout=_SECONDS)  # noqa: S603 - our own script
    if done.returncode:
        raise BuildError(f"the modules could not be compiled: {done.stderr.decode('utf-8', 'replace')[-2000:]}")
    return done.stdout.decode()


def _compile_library(made: Path) -> None:
    """The kernel's copy of the standard library: compiled, or half of the time to start would go into that.

    Guest Python's has the sources, which tracebacks show. Kept in the cache: it is the same for all builds.
    """
    kept = cache_place() / f"{PYODIDE.sha256}.library2"
    if not kept.exists():
        with tempfile.TemporaryDirectory(dir=draft_directory(kept.parent)) as scratch:
            with zipfile.ZipFile(made / "pyodide/python_stdlib.zip") as archive:
                archive.extractall(scratch)
            top = Path(scratch)
            files = ((path.relative_to(top).as_posix(), path) for path in sorted(top.rglob("*")) if path.is_file())
            kernels = [each for each in files if not each[0].startswith(NOT_THE_KERNELS)]
            _compile(kernels, made, made / _LIBRARY, level=2)  # without docstrings
            shutil.copy(made / _LIBRARY, top / "made")
            (top / "made").replace(kept)
    shutil.copy(kept, made / _LIBRARY)


def _compile_loaded(made: Path, scratch: Path) -> None:
    """Put compiled copies of what guest Python always loads beside the sources: its start takes a third of the time."""
    archive = made / "pyodide/python_stdlib.zip"
    loaded = _run_node("loaded.mjs", made).split()
    names = [path.removeprefix(_GUEST_LIBRARY) for path in loaded if path.startswith(_GUEST_LIBRARY)]
    with zipfile.ZipFile(archive) as packed:
        modules = [(name, Path(packed.extract(name, scratch / "loaded"))) for name in names]
    _compile(modules, made, scratch / "loaded.zip", prefix=_GUEST_LIBRARY)
    with zipfile.ZipFile(scratch / "loaded.zip") as compiled, zipfile.ZipFile(archive, "a") as packed:
        for each in compiled.infolist():
            packed.writestr(zipfile.ZipInfo(each.filename, _TIME), compiled.read(each))


def _forget_packages(lock: Path) -> dict[str, str]:
    """Empty Pyodide's list of its packages, which are not here: digests by their file names."""
    described = json.loads(lock.read_text())
    lock.write_text(json.dumps({**described, "packages": {}}))
    return {package["file_name"]: package["sha256"] for package in described["packages"].values()}


def _zones() -> Iterator[tuple[str, Path]]:
    """The files of the tzdata package."""
    top = Path(names_file()).parent
    zones = (top / "zones").read_text().split()
    for name in ["__init__.py", "zones", *(f"zoneinfo/{zone}" for zone in zones)]:
        yield f"tzdata/{name}", top / name


def package(name: str) -> Iterator[tuple[str, Path]]:
    """The Python modules of a package that is installed here. BuildError."""
    try:
        files = distribution(name).files or []
    except PackageNotFoundError:
        raise BuildError(f"the page needs {name}; {install_hint('browser')}") from None
    for file in files:
        if file.suffix == ".py" and file.parts[0] == name and not file.as_posix().startswith(UNUSED):
            yield file.as_posix(), Path(str(file.locate()))


def _wheel(wheel: Path, scratch: Path) -> Iterator[tuple[str, Path]]:
    """The modules of a wheel."""
    with zipfile.ZipFile(wheel) as packed:
        for name in sorted(packed.namelist()):
            if name.endswith((".py", ".so")):
                yield name, Path(packed.extract(name, scratch))


def _store(path: Path) -> None:
    """Have an archive of modules not compressed inside: the server's compression is better."""
    with zipfile.ZipFile(path) as source:
        files = {name: source.read(name) for name in sorted(source.namelist()) if not name.endswith("/")}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name, _TIME), data)


def _describe(made: Path) -> None:
    """package.json: the directory is a package of npm's, too."""
    described = {
        "name": "belljar",
        "version": __version__.replace(".dev", "-dev."),
        "description": "A sandbox for AI agents, in a page or in Node",
        "license": "Apache-2.0",
        "type": "module",
        "engines": {"node": ">=24"},
        "exports": {".": {"types": "./belljar.d.ts", "node": "./node.mjs", "default": "./belljar.mjs"}},
        "types": "./belljar.d.ts",
        "files": ["**/*", "!**/*.br", "!**/*.gz"],
    }
    (made / "package.json").write_text(json.dumps(described, indent=2) + "\n")


def _list_offline(made: Path) -> None:
    """What a visitor's browser keeps with the first visit: all but guest JavaScript, which is kept when it is used."""
    files = (path.relative_to(made) for path in sorted(made.rglob("*")) if path.is_file())
    names = [path.as_posix() for path in files if path.parts[0] != "node" and not path.stem.endswith("_node")]
    (made / "offline.json").write_text(json.dumps(names))


def _compress(path: Path) -> None:
    """Put compressed copies beside a file; kept in the cache, because the best compression takes a minute."""
    data = path.read_bytes()
    kept = cache_place() / f"{hashlib.sha256(data).hexdigest()}.compressed"
    if not kept.exists():
        packed = msgspec.msgpack.encode((gzip.compress(data, 9, mtime=0), _brotli(data)))
        unfinished = Path(draft_directory(kept.parent), f"{kept.stem}.{os.getpid()}.{path.name}")
        unfinished.write_bytes(packed)
        unfinished.replace(kept)
    for suffix, copy in zip(
        (".gz", ".br"), msgspec.msgpack.decode(kept.read_bytes(), type=tuple[bytes, bytes]), strict=True
    ):
        if copy:
            path.with_name(path.name + suffix).write_bytes(copy)


def _brotli(data: bytes) -> bytes:
    try:
        import brotli
    except ImportError:
        return b""  # optional: servers have gzip
    packed: bytes = brotli.compress(data, lgwin=24)
    return packed
