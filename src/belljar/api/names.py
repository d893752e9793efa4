"""Every public name in one place, for type checkers; the package's `__init__` loads each from where it is."""

from belljar.abi.limits import Limits, RunLimits
from belljar.api.async_js import async_js
from belljar.api.async_process import AsyncProcess, AsyncTerminal
from belljar.api.async_sandbox import AsyncSandbox
from belljar.api.changes import Change
from belljar.api.containers import AsyncContainer, Container, ContainerInfo
from belljar.api.errors import (
    ConflictError,
    ContainerError,
    EngineUnavailable,
    ExecError,
    FileError,
    ImageError,
    InfrastructureError,
    IsolationUnavailable,
    NotOnThisTier,
    PolicyError,
    PortClosed,
    ProtectedFileError,
    RefusedFile,
    SandboxClosed,
    SandboxCreationError,
    SandboxError,
    ServiceError,
    SnapshotError,
    ToolError,
)
from belljar.api.events import Event
from belljar.api.image import Image, Progress
from belljar.api.interpreter import Interpreter
from belljar.api.interpreter_core import PrefixError
from belljar.api.js import js
from belljar.api.microvm import Machine
from belljar.api.mounts import Mount
from belljar.api.prefix import Prefix
from belljar.api.process import Process, Terminal
from belljar.api.python import async_python, python
from belljar.api.results import Entry, ExecResult, FileResult, GrepMatch, Info
from belljar.api.review import Changes, FileChange
from belljar.api.rootfs import Rootfs
from belljar.api.runs import Output, RunError, RunFailed, RunResult
from belljar.api.sandbox import Sandbox
from belljar.api.saved import SavedVariables
from belljar.api.services import ServiceStatus
from belljar.api.snapshot import Snapshot
from belljar.api.use import use
from belljar.net.broker.audit_host import AuditLog
from belljar.net.broker.fetch_host import safe_fetch
from belljar.net.network import Network, NetworkLimits
from belljar.store.errors import StoreError
from belljar.store.store import Store
from belljar.vm.blockstore import BlockStore, BlockStoreError

__all__ = [
    "AsyncContainer",
    "AsyncProcess",
    "AsyncSandbox",
    "AsyncTerminal",
    "AuditLog",
    "BlockStore",
    "BlockStoreError",
    "Change",
    "Changes",
    "ConflictError",
    "Container",
    "ContainerError",
    "ContainerInfo",
    "EngineUnavailable",
    "Entry",
    "Event",
    "ExecError",
    "ExecResult",
    "FileChange",
    "FileError",
    "FileResult",
    "GrepMatch",
    "Image",
    "ImageError",
    "Info",
    "InfrastructureError",
    "Interpreter",
    "IsolationUnavailable",
    "Limits",
    "Machine",
    "Mount",
    "Network",
    "NetworkLimits",
    "NotOnThisTier",
    "Output",
    "PolicyError",
    "PortClosed",
    "Prefix",
    "PrefixError",
    "Process",
    "Progress",
    "ProtectedFileError",
    "RefusedFile",
    "Rootfs",
    "RunError",
    "RunFailed",
    "RunLimits",
    "RunResult",
    "Sandbox",
    "SandboxClosed",
    "SandboxCreationError",
    "SandboxError",
    "SavedVariables",
    "ServiceError",
    "ServiceStatus",
    "Snapshot",
    "SnapshotError",
    "Store",
    "StoreError",
    "Terminal",
    "ToolError",
    "async_js",
    "async_python",
    "js",
    "python",
    "safe_fetch",
    "use",
]
