"""The program that makes an interpreter for a sandbox's owner of an image's own Python."""

from __future__ import annotations

import base64
import json
import zlib
from functools import cache
from pathlib import Path
from typing import Final

_ROOMS: Final = Path(__file__).parents[1]
_SESSION: Final = _ROOMS / "engines/python/guest/_belljar"
_HERE: Final = _ROOMS / "native/guest"
_MODULES: Final = {
    "_belljar": _HERE / "__init__.py",
    "_belljar.main": _HERE / "main.py",
    "_belljar.tools": _HERE / "tools.py",
    "_belljar.connect": _HERE / "connect.py",
    "_belljar.serve": _HERE / "serve.py",
    "_belljar.session": _SESSION / "session.py",
    "_belljar.state": _SESSION / "state.py",
    "_belljar.figures": _SESSION / "figures.py",
    "_belljar.values": _ROOMS / "abi/values.py",
    "cloudpickle": _HERE / "cloudpickle.py",
}


@cache
def python_program() -> str:
    """The source for `python3 -c`; its arguments are a mode ("session", "prefix", "run") and a name of the prefix's."""
    sources = {name: path.read_text() for name, path in _MODULES.items()}
    packed = base64.b85encode(zlib.compress(json.dumps(sources).encode(), 9)).decode()
    return f"SOURCES = {packed!r}\n{(_HERE / 'begin.py').read_text()}"
