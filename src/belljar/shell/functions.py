"""A shell function: its tree for printing and its compiled body for calling."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from belljar.shell.nodes import Function

if TYPE_CHECKING:
    from belljar.shell.shell import Shell


class FunctionDef(Struct):
    """One defined function. Replaced, never changed, by a redefinition; attributes make a copy."""

    name: str
    node: Function
    body: Callable[[Shell], int]
    source: str
    """BASH_SOURCE: the file it was defined in ("main" at the prompt, "environment" when imported)."""
    line: int
    exported: bool = False
    readonly: bool = False
    traced: bool = False
