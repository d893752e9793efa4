"""Errors as clients see them: the control API's and envd's REST shape, and Connect's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from belljar.abi.errno import (
    EACCES,
    EDQUOT,
    EEXIST,
    EFBIG,
    EINVAL,
    EISDIR,
    ELOOP,
    ENAMETOOLONG,
    ENOENT,
    ENOSPC,
    ENOTDIR,
)
from belljar.api.errors import FileError, SandboxClosed, SandboxError, printable

HTTP_STATUS: Final = {
    "canceled": 499,
    "unknown": 500,
    "invalid_argument": 400,
    "deadline_exceeded": 504,
    "not_found": 404,
    "already_exists": 409,
    "permission_denied": 403,
    "resource_exhausted": 429,
    "failed_precondition": 400,
    "unimplemented": 501,
    "internal": 500,
    "unavailable": 503,
    "unauthenticated": 401,
}
"""HTTP statuses of Connect's codes, for unary calls."""

_CODES: Final = {
    ENOENT: "not_found",
    ENOTDIR: "not_found",
    EEXIST: "already_exists",
    EACCES: "permission_denied",
    EINVAL: "invalid_argument",
    EISDIR: "invalid_argument",
    ENAMETOOLONG: "invalid_argument",
    ELOOP: "failed_precondition",
}
_STATUSES: Final = {
    ENOENT: 404,
    ENOTDIR: 404,
    EISDIR: 400,
    EINVAL: 400,
    ENAMETOOLONG: 400,
    EFBIG: 413,
    ENOSPC: 507,
    EDQUOT: 507,
}


class ApiError(Exception):
    """An answer of a REST endpoint: `{"code": status, "message": ...}`."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = dict(headers or {})

    @property
    def body(self) -> dict[str, object]:
        return {"code": self.status, "message": self.message}


class SandboxGone(ApiError):
    """The answer for a sandbox that does not run; the SDKs know it by its status and its words."""

    def __init__(self, sandbox: str) -> None:
        super().__init__(502, "The sandbox was not found")
        self.sandbox = sandbox

    @property
    def body(self) -> dict[str, object]:
        return {"sandboxId": self.sandbox, "message": self.message, "code": 502}


class RpcError(Exception):
    """An answer of a Connect call: `{"code": name, "message": ...}`."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    @property
    def body(self) -> dict[str, object]:
        return {"code": self.code, "message": self.message}


def unauthorized(message: str) -> ApiError:
    return ApiError(401, message)


def not_found(sandbox: str) -> ApiError:
    """The control API's answer for an id that the tenant has no sandbox of."""
    return ApiError(404, f"Sandbox '{sandbox}' not found")


def rpc_error(error: SandboxError) -> RpcError:
    """Connect's error for one of a sandbox."""
    if isinstance(error, FileError):
        return RpcError(_CODES.get(error.errno, "internal"), str(error))
    if isinstance(error, SandboxClosed):
        return RpcError("unavailable", "the sandbox ended before the call was done")
    return RpcError("internal", printable(str(error)))


def file_status(error: FileError) -> int:
    """The HTTP status of a failed transfer of a file."""
    return _STATUSES.get(error.errno, 500)
