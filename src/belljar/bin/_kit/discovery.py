"""Finds utilities by file name: `bin/wc.py` or `bin/awk/` holds a `main`. Nothing else names them."""

from __future__ import annotations

import codecs
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules, walk_packages

from belljar import abi, kernel, regex, shell
from belljar import bin as package
from belljar.bin._kit.program import Program

_ODD = {"[": "test"}
"""Names that can't be a module's."""


@cache
def names() -> tuple[str, ...]:
    """Every utility, sorted."""
    found = [_command(module.name) for module in iter_modules(package.__path__) if not module.name.startswith("_")]
    return tuple(sorted(found + [odd for odd, module in _ODD.items() if module in found]))


def _command(module: str) -> str:
    """`sqlite3_host` is sqlite3 (it touches the host), `apt_get` is apt-get."""
    return module.removesuffix("_host").replace("_", "-")


@cache
def find(name: str) -> Program | None:
    """The utility of that name, imported on first use; None if there is none."""
    if name not in names():
        return None
    module = _ODD.get(name, name).replace("-", "_")
    path = f"{package.__name__}.{module}"
    if find_spec(path) is None:
        path += "_host"
    found = import_module(path)
    main = found.main
    return main if isinstance(main, Program) else Program(name, found.__doc__ or name, None, lambda p, _: main(p))


def preload() -> None:
    """Import every module a session could need: once a worker is locked, nothing more can be loaded."""
    for layer in (abi, kernel, regex, shell, package):
        for module in walk_packages(layer.__path__, f"{layer.__name__}."):
            try:
                import_module(module.name)
            except ImportError as error:
                # A part that needs a package of an extra: its door says so to whoever calls it.
                if (error.name or "").partition(".")[0] == "belljar":
                    raise
    for name in names():
        find(name)
    # Python loads a codec when it is first used: zip archives name their files in this one.
    codecs.lookup("cp437")
