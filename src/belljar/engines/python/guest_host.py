"""The modules that run inside the guest, as files of its library: those under `guest/`, and the calls' protocol."""

from __future__ import annotations

from pathlib import Path

_GUEST = Path(__file__).parent / "guest"
_VALUES = Path(__file__).parent.parent.parent / "abi" / "values.py"
_PROTOCOL = Path(__file__).parent.parent / "wire" / "calls.py"


def added_modules() -> tuple[dict[str, bytes], frozenset[str]]:
    """Return the modules added to the library, and the names of the library files they replace."""
    added = {path.relative_to(_GUEST).as_posix(): path.read_bytes() for path in sorted(_GUEST.rglob("*.py"))}
    added["_belljar/protocol.py"] = _PROTOCOL.read_bytes()
    added["_belljar/values.py"] = _VALUES.read_bytes()
    return added, frozenset(name + "c" for name in added)
