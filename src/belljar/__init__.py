"""belljar: a sandbox for AI agents. The public names, nothing else.

They load on first use: the worker's side imports this package too, and needs none of them.
"""

from __future__ import annotations

from belljar.abi.version import __version__ as __version__

TYPE_CHECKING = False  # as in `typing`, without loading that
if TYPE_CHECKING:
    from belljar.api.names import *  # noqa: F403

    __all__: list[str]

_ROOMS = frozenset(
    "abi api bin cli engines forking image integrations kernel libc lockdown net owner regex shell store "
    "worker zygote".split()
)
"""Packages of ours: `from belljar import kernel` asks here first, and must not load the owner's side in a worker."""


def __getattr__(name: str) -> object:
    """The public names are those of `api/names.py`."""
    if name == "__all__" or not (name.startswith("_") or name in _ROOMS):
        from belljar.api import names

        if name == "__all__":
            return [*names.__all__, "__version__"]
        if name in names.__all__:
            return getattr(names, name)
    raise AttributeError(f"module 'belljar' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})  # type: ignore[misc]
