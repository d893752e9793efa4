"""belljar: a sandbox for AI agents. The public names, nothing else.

They load on first use: the worker's side imports this package too, and needs none of them.
"""

from __future__ import annotations

from belljar.abi.version import __version__

TYPE_CHECKING = False  # as in `typing`, without loading that
if TYPE_CHECKING:
    from belljar.api.names import (
        AsyncProcess,
        AsyncSandbox,
        AsyncTerminal,
        AuditLog,
        Change,
        EngineUnavailable,
        Entry,
        Event,
        ExecError,
        ExecResult,
        FileError,
        FileResult,
        GrepMatch,
        Info,
        Interpreter,
        IsolationUnavailable,
        Limits,
        Mount,
        Network,
        NetworkLimits,
        Output,
        PolicyError,
        PortClosed,
        Prefix,
        PrefixError,
        Process,
        RunError,
        RunLimits,
        RunResult,
        Sandbox,
        SandboxClosed,
        SandboxCreationError,
        SandboxError,
        SavedVariables,
        SnapshotError,
        Terminal,
        ToolError,
        async_js,
        async_python,
        js,
        python,
        safe_fetch,
    )

__all__ = [
    "AsyncProcess",
    "AsyncSandbox",
    "AsyncTerminal",
    "AuditLog",
    "Change",
    "EngineUnavailable",
    "Entry",
    "Event",
    "ExecError",
    "ExecResult",
    "FileError",
    "FileResult",
    "GrepMatch",
    "Info",
    "Interpreter",
    "IsolationUnavailable",
    "Limits",
    "Mount",
    "Network",
    "NetworkLimits",
    "Output",
    "PolicyError",
    "PortClosed",
    "Prefix",
    "PrefixError",
    "Process",
    "RunError",
    "RunLimits",
    "RunResult",
    "Sandbox",
    "SandboxClosed",
    "SandboxCreationError",
    "SandboxError",
    "SavedVariables",
    "SnapshotError",
    "Terminal",
    "ToolError",
    "__version__",
    "async_js",
    "async_python",
    "js",
    "python",
    "safe_fetch",
]


_TO_COME = {"Image": "images are", "Snapshot": "durable snapshots are"}


def __getattr__(name: str) -> object:
    if name in __all__:
        from belljar.api import names

        return getattr(names, name)
    if name in _TO_COME:
        raise AttributeError(f"belljar.{name}: {_TO_COME[name]} not in this version of belljar")
    raise AttributeError(f"module 'belljar' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
