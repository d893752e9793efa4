"""The modules that run inside the guest, as files of its library: those of `guest/`, and some that both sides share."""

from __future__ import annotations

from pathlib import Path

_GUEST = Path(__file__).parent / "guest"
_ABI = Path(__file__).parent.parent.parent / "abi"
_PROTOCOL = Path(__file__).parent.parent / "wire" / "calls.py"


def added_modules() -> tuple[dict[str, bytes], frozenset[str]]:
    """Return the modules added to the library, and the names of the library files they replace."""
    added = {path.relative_to(_GUEST).as_posix(): path.read_bytes() for path in sorted(_GUEST.rglob("*.py"))}
    added["_belljar/protocol.py"] = _PROTOCOL.read_bytes()
    for name in ("system.py", "values.py"):
        added[f"_belljar/{name}"] = (_ABI / name).read_bytes()
    return added, frozenset(name + "c" for name in added)
