"""belljar: a sandbox for AI agents. The public names, nothing else.

They load on first use: the worker's side imports this package too, and needs none of them.
"""

from __future__ import annotations

from belljar.abi.version import __version__

TYPE_CHECKING = False  # as in `typing`, without loading that
if TYPE_CHECKING:
    from belljar.api.names import (
        AsyncSandbox,
        AuditLog,
        Change,
        EngineUnavailable,
        Entry,
        Event,
        ExecError,
        ExecResult,
        FileError,
        FileResult,
        IsolationUnavailable,
        Limits,
        Mount,
        Network,
        NetworkLimits,
        PrefixError,
        RunError,
        RunLimits,
        RunResult,
        Sandbox,
        SandboxClosed,
        SandboxCreationError,
        SandboxError,
        SavedVariables,
        SnapshotError,
        async_js,
        async_python,
        js,
        python,
        safe_fetch,
    )

__all__ = [
    "AsyncSandbox",
    "AuditLog",
    "Change",
    "EngineUnavailable",
    "Entry",
    "Event",
    "ExecError",
    "ExecResult",
    "FileError",
    "FileResult",
    "IsolationUnavailable",
    "Limits",
    "Mount",
    "Network",
    "NetworkLimits",
    "PrefixError",
    "RunError",
    "RunLimits",
    "RunResult",
    "Sandbox",
    "SandboxClosed",
    "SandboxCreationError",
    "SandboxError",
    "SavedVariables",
    "SnapshotError",
    "__version__",
    "async_js",
    "async_python",
    "js",
    "python",
    "safe_fetch",
]


def __getattr__(name: str) -> object:
    if name in __all__:
        from belljar.api import names

        return getattr(names, name)
    raise AttributeError(f"module 'belljar' has no attribute {name!r}")
