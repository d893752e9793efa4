"""belljar: a sandbox for AI agents. The public names, nothing else.

They load on first use: the worker's side imports this package too, and needs none of them; a program pays for those it
uses.
"""

from __future__ import annotations

from importlib import import_module

from belljar.abi.version import __version__ as __version__

TYPE_CHECKING = False  # as in `typing`, without loading that
if TYPE_CHECKING:
    from belljar.api.names import *  # noqa: F403
    from belljar.remote.async_sandbox import AsyncRemoteSandbox as AsyncRemoteSandbox
    from belljar.remote.sandbox import RemoteSandbox as RemoteSandbox

    __all__: list[str]

_NAMES = {
    "abi.limits": "Limits RunLimits",
    "api.async_js": "async_js",
    "api.async_process": "AsyncProcess AsyncTerminal",
    "api.async_sandbox": "AsyncSandbox",
    "api.changes": "Change",
    "api.containers": "AsyncContainer Container ContainerInfo",
    "api.errors": "ConflictError ContainerError EngineUnavailable ExecError FileError ImageError InfrastructureError "
    "IsolationUnavailable NotOnThisTier PolicyError PortClosed ProtectedFileError RefusedFile SandboxClosed "
    "SandboxCreationError SandboxError ServiceError SnapshotError ToolError",
    "api.events": "Event",
    "api.image": "Image Progress",
    "api.interpreter": "Interpreter",
    "api.interpreter_core": "PrefixError",
    "api.js": "js",
    "api.microvm": "Machine",
    "api.mounts": "Mount",
    "api.prefix": "Prefix",
    "api.process": "Process Terminal",
    "api.python": "async_python python",
    "api.rootfs": "Rootfs",
    "api.results": "Entry ExecResult FileResult GrepMatch Info",
    "api.review": "Changes FileChange",
    "api.runs": "Output RunError RunFailed RunResult",
    "api.sandbox": "Sandbox",
    "api.saved": "SavedVariables",
    "api.services": "ServiceStatus",
    "api.snapshot": "Snapshot",
    "api.use": "use",
    "net.broker.audit_host": "AuditLog",
    "net.broker.fetch_host": "safe_fetch",
    "net.network": "Network NetworkLimits",
    "remote.async_sandbox": "AsyncRemoteSandbox",
    "remote.sandbox": "RemoteSandbox",
    "vm.blockstore": "BlockStore BlockStoreError",
    "store.errors": "StoreError",
    "store.store": "Store",
}
"""The modules that the public names are in. `api/names.py` says the same to type checkers."""


def __getattr__(name: str) -> object:
    if name == "__all__":
        return sorted(["__version__", *(each for names in _NAMES.values() for each in names.split())])
    if not name.startswith("_"):
        for module, names in _NAMES.items():
            if name in names.split():
                globals()[name] = found = getattr(import_module(f"{__name__}.{module}"), name)
                return found
    raise AttributeError(f"module 'belljar' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})  # type: ignore[misc]
