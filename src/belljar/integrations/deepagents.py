"""Deep Agents: a belljar sandbox as the backend of an agent's files and shell.

>>> from deepagents import create_deep_agent
>>> agent = create_deep_agent(model, backend=BelljarSandbox())
"""

from __future__ import annotations

import base64
import re
from datetime import UTC, datetime
from posixpath import normpath
from typing import Any, Final

from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode
from belljar.api.async_sandbox import AsyncSandbox
from belljar.api.errors import FileError
from belljar.api.results import ExecResult, split_grep
from belljar.api.sandbox import Sandbox
from belljar.integrations.extras import needs
from belljar.integrations.steps import Operation, do, run, run_async

with needs("langchain"):
    from deepagents.backends.protocol import (
        BackendProtocol,
        DeleteResult,
        EditResult,
        ExecuteResponse,
        FileData,
        FileDownloadResponse,
        FileInfo,
        FileUploadResponse,
        GlobResult,
        GrepMatch,
        GrepResult,
        LsResult,
        ReadResult,
        WriteResult,
    )
    from deepagents.backends.sandbox import BaseSandbox
    from deepagents.backends.utils import compile_grep_include_glob, normalize_read_bounds

BINARY_MAX: Final = 500 * 1024
"""Bytes of a binary file that a read shows; more is an error, as with every backend of Deep Agents."""
TEXT_MAX: Final = 500 * 1024
"""Bytes of text in one read: whole lines up to here, the rest at `next_offset`."""
GREP_MAX: Final = 10_000
GLOB_MAX: Final = 10_000

_ERRORS: Final = {
    "ENOENT": "file_not_found",
    "EACCES": "permission_denied",
    "EPERM": "permission_denied",
    "EROFS": "permission_denied",
    "EISDIR": "is_directory",
}


def _code(error: FileError) -> str:
    return _ERRORS.get(SysError(error.errno).name, "invalid_path")


def _reason(path: str, error: FileError) -> str:
    """Return an error's text for a model."""
    if SysError(error.errno).name == "ENOENT":
        return f"Error: File '{path}' not found"
    return f"Error: '{path}': {error.strerror}"


class BelljarFiles(BackendProtocol):
    """The files of a sandbox, with no shell: for an agent's memory, or one that may only read and write."""

    def __init__(self, *, sandbox: Sandbox | AsyncSandbox | None = None) -> None:
        self._sandbox = sandbox if sandbox is not None else Sandbox()

    def ls(self, path: str) -> LsResult:
        return run(self._sandbox, _ls(path))

    async def als(self, path: str) -> LsResult:
        return await run_async(self._sandbox, _ls(path))

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        return run(self._sandbox, _read(file_path, offset, limit))

    async def aread(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        return await run_async(self._sandbox, _read(file_path, offset, limit))

    def write(self, file_path: str, content: str) -> WriteResult:
        return run(self._sandbox, _write(file_path, content))

    async def awrite(self, file_path: str, content: str) -> WriteResult:
        return await run_async(self._sandbox, _write(file_path, content))

    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> EditResult:
        return run(self._sandbox, _edit(file_path, old_string, new_string, replace_all))

    async def aedit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> EditResult:
        return await run_async(self._sandbox, _edit(file_path, old_string, new_string, replace_all))

    def delete(self, file_path: str) -> DeleteResult:
        return run(self._sandbox, _delete(file_path))

    async def adelete(self, file_path: str) -> DeleteResult:
        return await run_async(self._sandbox, _delete(file_path))

    def grep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> GrepResult:
        return run(self._sandbox, _grep(pattern, path, glob, max_count))

    async def agrep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> GrepResult:
        return await run_async(self._sandbox, _grep(pattern, path, glob, max_count))

    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        return run(self._sandbox, _glob(pattern, path))

    async def aglob(self, pattern: str, path: str | None = None) -> GlobResult:
        return await run_async(self._sandbox, _glob(pattern, path))

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        return run(self._sandbox, _upload(files))

    async def aupload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        return await run_async(self._sandbox, _upload(files))

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        return run(self._sandbox, _download(paths))

    async def adownload_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        return await run_async(self._sandbox, _download(paths))


class BelljarSandbox(BelljarFiles, BaseSandbox):
    """Files and shell. Give it a `Sandbox` (or an `AsyncSandbox`, for async agents), or it makes one of its own."""

    def __init__(self, *, sandbox: Sandbox | AsyncSandbox | None = None, timeout: float | None = None) -> None:
        super().__init__(sandbox=sandbox)
        self._timeout = timeout
        """Seconds for a command that names none; None: the sandbox's own limit."""

    @property
    def id(self) -> str:
        return self._sandbox.name

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        return run(self._sandbox, self._execute(command, timeout))

    async def aexecute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        return await run_async(self._sandbox, self._execute(command, timeout))

    def _execute(self, command: str, timeout: int | None) -> Operation[ExecuteResponse]:
        seconds = self._timeout if timeout is None else timeout
        result = yield from do("exec", command, merge_stderr=True, timeout=seconds or None)
        return ExecuteResponse(result.stdout, result.exit_code, result.truncated)


def _ls(path: str) -> Operation[LsResult]:
    try:
        entries = yield from do("files.list", path)
    except FileError as error:
        return LsResult(error=_reason(path, error))
    return LsResult(
        entries=[
            FileInfo(
                path=f"{path.rstrip('/')}/{entry.name}",
                is_dir=entry.is_dir,
                size=entry.size,
                modified_at=datetime.fromtimestamp(entry.mtime, UTC).isoformat(),
            )
            for entry in entries
        ]
    )


def _read(path: str, offset: int, limit: int) -> Operation[ReadResult]:
    offset, limit = normalize_read_bounds(offset, limit)
    try:
        data: bytes = yield from do("files.read_bytes", path)
    except FileError as error:
        return ReadResult(error=_reason(path, error))
    try:
        text = data.decode()
    except UnicodeDecodeError:
        if len(data) > BINARY_MAX:
            return ReadResult(error=f"File '{path}': Binary file exceeds maximum preview size of {BINARY_MAX} bytes")
        return ReadResult(file_data=FileData(content=base64.b64encode(data).decode(), encoding="base64"))
    if not text:
        return ReadResult(file_data=FileData(content="", encoding="utf-8"))
    if limit == 0:
        return ReadResult(file_data=FileData(content="", encoding="utf-8"), no_lines_requested=True)
    lines = _lines(text)
    if offset >= len(lines):
        return ReadResult(error=f"Error: Line offset {offset} exceeds file length ({len(lines)} lines)")
    end, size = offset, 0
    while end < min(offset + limit, len(lines)) and (end == offset or size + len(lines[end]) <= TEXT_MAX):
        size += len(lines[end])
        end += 1
    return ReadResult(
        file_data=FileData(content="".join(lines[offset:end]).removesuffix("\n"), encoding="utf-8"),
        total_lines=len(lines),
        start_line=offset + 1,
        end_line=end,
        next_offset=end if end < len(lines) else None,
    )


def _lines(text: str) -> list[str]:
    """Split into lines with their newlines; only \\n ends one, as in every tool that counts lines."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _write(path: str, content: str) -> Operation[WriteResult]:
    try:
        yield from do("files.write", path, content)
    except FileError as error:
        return WriteResult(error=_reason(path, error))
    return WriteResult(path=path)


def _edit(path: str, old: str, new: str, replace_all: bool) -> Operation[EditResult]:
    if not old:
        return EditResult(error="Error: old_string cannot be empty. Provide the exact text to replace.")
    try:
        data: bytes = yield from do("files.read_bytes", path)
        text = data.decode()
        count = text.count(old)
        if count == 0:
            return EditResult(error=f"Error: String not found in '{path}': {old!r}")
        if count > 1 and not replace_all:
            return EditResult(
                error=f"Error: String appears multiple times ({count}) in '{path}'. "
                "Use replace_all=True, or give a longer string that is unique."
            )
        yield from do("files.write", path, text.replace(old, new))
    except FileError as error:
        return EditResult(error=_reason(path, error))
    except UnicodeDecodeError:
        return EditResult(error=f"Error: '{path}' is not UTF-8 text")
    return EditResult(path=path, occurrences=count)


def _delete(path: str) -> Operation[DeleteResult]:
    try:
        yield from do("files.remove", path, recursive=True)
    except FileError as error:
        return DeleteResult(error=_reason(path, error))
    return DeleteResult(path=path)


def _grep(pattern: str, path: str | None, glob: str | None, max_count: int | None) -> Operation[GrepResult]:
    root = path if path is not None else "."
    try:
        included = compile_grep_include_glob(glob) if glob is not None else None
    except ValueError as error:
        return GrepResult(error=f"Error: {error}")
    result: ExecResult = yield from do("exec", ["grep", "-rInHZF", "-e", pattern, "--", root])
    if result.exit_code not in (0, 1, 2) or result.limit is not None:
        return GrepResult(error=f"Error: grep stopped: {result.limit or result.stderr.strip()}")
    most = max_count if max_count is not None else GREP_MAX
    matches: list[GrepMatch] = []
    for found in split_grep(result.stdout_bytes):
        if included is not None and found.path != root and not included(_below(root, found.path)):
            continue
        if len(matches) == most:
            return GrepResult(matches=matches, truncated=True)
        matches.append(GrepMatch(path=found.path, line=found.line, text=found.text))
    if result.exit_code == 2 and not matches:
        return GrepResult(error=f"Error: {result.stderr.strip()}")
    return GrepResult(matches=matches)


def _glob(pattern: str, path: str | None) -> Operation[GlobResult]:
    root = normpath(path) if path is not None else "/workspace"
    try:
        matches = compile_grep_include_glob(pattern)
    except ValueError as error:
        return GlobResult(error=f"Error: {error}")
    prune = ["(", "-path", "/proc", "-o", "-path", "/dev", ")", "-prune", "-o"] if root == "/" else []
    result: ExecResult = yield from do("exec", ["find", root, *prune, "-xtype", "f", "-print0"])
    if result.exit_code != 0 and not result.stdout_bytes:
        return GlobResult(error=f"Error: {result.stderr.strip() or result.limit}")
    files = [name for name in map(fsdecode, result.stdout_bytes.split(b"\0")[:-1]) if matches(_below(root, name))]
    found: list[Any] = [FileInfo(path=name, is_dir=False) for name in sorted(files)[:GLOB_MAX]]
    if result.limit is not None or len(files) > GLOB_MAX:
        return GlobResult(matches=found, truncated=True, truncation_reason="budget")
    if result.exit_code != 0:
        return GlobResult(matches=found, truncated=True, truncation_reason="unreadable")
    return GlobResult(matches=found)


def _below(root: str, path: str) -> str:
    return path.removeprefix(root.rstrip("/")).lstrip("/")


def _upload(files: list[tuple[str, bytes]]) -> Operation[list[FileUploadResponse]]:
    responses: list[FileUploadResponse] = []
    for path, data in files:
        error: str | None = None
        if not path.startswith("/"):
            error = "invalid_path"
        else:
            try:
                yield from do("files.write", path, data)
            except FileError as failure:
                error = _code(failure)
        responses.append(FileUploadResponse(path=path, error=error))
    return responses


def _download(paths: list[str]) -> Operation[list[FileDownloadResponse]]:
    responses: list[FileDownloadResponse] = []
    for path in paths:
        if not path.startswith("/"):
            responses.append(FileDownloadResponse(path=path, error="invalid_path"))
            continue
        try:
            data = yield from do("files.read_bytes", path)
        except FileError as failure:
            responses.append(FileDownloadResponse(path=path, error=_code(failure)))
        else:
            responses.append(FileDownloadResponse(path=path, content=data))
    return responses
