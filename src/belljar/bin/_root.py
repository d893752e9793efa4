"""The failsafe of rm, chmod and chown against working on all of `/`."""

from __future__ import annotations

from belljar.abi.errors import SysError
from belljar.bin._kit.quoting import quote_name
from belljar.kernel.process import Process


def refuse_root(process: Process, path: str) -> bool:
    """Whether a path is the root; if so, that is said."""
    try:
        if process.fs.resolve(path, follow=False) != process.fs.root:
            return False
    except SysError:
        return False
    shown = quote_name(path) + ("" if path == "/" else " (same as '/')")
    process.warn(f"it is dangerous to operate recursively on {shown}")
    process.warn("use --no-preserve-root to override this failsafe")
    return True
