"""Numbers that the worker and a WASI program's engine process agree on."""

from __future__ import annotations

from typing import Final

ROOT: Final = 3
"""The descriptor from which a WASI program reaches its files; a C library looks for it from here on."""
