"""An MCP server whose tools are a sandbox: `belljar mcp`.

A client gets a sandbox of its own with its first call, and it ends with the client. Over stdio that is the process's
only client; over HTTP it is an MCP session. A client that keeps no session names the sandbox that it made with
`sandbox_create` in each call.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Final

from belljar.abi.version import __version__
from belljar.api.errors import FileError, SandboxError
from belljar.api.runs import RunResult
from belljar.integrations.extras import needs
from belljar.integrations.mcp_clients import Background, Box, Boxes
from belljar.integrations.shown import texts
from belljar.remote.choice import PlacedOptions

with needs("mcp"):
    from mcp.server.mcpserver import Context, Image, MCPServer
    from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, ToolError
    from pydantic import BaseModel, Field

INSTRUCTIONS: Final = (
    "A sealed Unix sandbox: bash and the usual utilities, Python, JavaScript, files under /workspace, no network "
    "unless granted. Nothing of the host is reachable. Files and background processes stay between calls."
)
READ_LINES: Final = 2000
READ_MAX: Final = 1 << 20
"""Characters of one page of a file, and bytes of one resource."""
SEARCH_MAX: Final = 500
FIND_MAX: Final = 5000
SandboxId = Annotated[
    str | None, Field(description="A sandbox made by sandbox_create or sandbox_fork; leave out for your own.")
]


class Command(BaseModel):
    stdout: str
    stderr: str
    exit_code: int
    timed_out: bool = False
    limit: str | None = None
    """The limit that stopped it, if one did."""
    truncated: bool = False


class ProcessOutput(BaseModel):
    stdout: str
    stderr: str
    exit_code: int | None
    """None while it runs."""


class FilePage(BaseModel):
    content: str
    first_line: int
    last_line: int
    total_lines: int
    truncated: bool = False
    """Whether the last line shown was cut."""


class FileEntry(BaseModel):
    name: str
    kind: str
    size: int


class Match(BaseModel):
    path: str
    line: int
    text: str


def make_server(
    options: PlacedOptions | None = None, *, most: int = 100, idle_seconds: float = 3600.0
) -> MCPServer[None]:
    """A server whose sandboxes are made from `options`. At most so many live; one unused for so long is closed."""
    boxes = Boxes(options or {}, most=most, idle_seconds=idle_seconds)

    @asynccontextmanager
    async def lifespan(_: MCPServer[None]) -> AsyncIterator[None]:
        try:
            yield None
        finally:
            await boxes.close_all()

    server: MCPServer[None] = MCPServer(
        "belljar", instructions=INSTRUCTIONS, version=__version__, lifespan=lifespan, log_level="WARNING"
    )
    _add_commands(server, boxes)
    _add_files(server, boxes)
    _add_interpreters(server, boxes)
    _add_sandboxes(server, boxes)
    return server


@asynccontextmanager
async def _errors_to_model() -> AsyncIterator[None]:
    """Turn errors of a sandbox into ToolError, which the model sees."""
    try:
        yield
    except (SandboxError, ValueError, UnicodeDecodeError) as error:
        raise ToolError(str(error)) from error


def _add_commands(server: MCPServer[None], boxes: Boxes) -> None:
    @server.tool()
    async def exec(
        command: str,
        ctx: Context,
        cwd: str | None = None,
        timeout: Annotated[float | None, Field(description="Seconds until it is killed.", gt=0)] = None,
        stdin: str | None = None,
        sandbox: SandboxId = None,
    ) -> Command:
        """Run a bash command to its end."""
        box = await boxes.of(ctx, sandbox)
        async with _errors_to_model():
            result = await box.sandbox.exec(command, cwd=cwd, timeout=timeout, stdin=stdin)
        return Command(
            stdout=result.stdout,
            stderr=result.stderr,
            exit_code=result.exit_code,
            timed_out=result.timed_out,
            limit=result.limit,
            truncated=result.truncated,
        )

    @server.tool()
    async def process_start(command: str, ctx: Context, cwd: str | None = None, sandbox: SandboxId = None) -> int:
        """Start a bash command in the background; gives its process id."""
        box = await boxes.of(ctx, sandbox)
        async with _errors_to_model():
            process = await box.sandbox.spawn(command, cwd=cwd)
        box.processes[process.pid] = Background(process)
        return process.pid

    def find(box: Box, pid: int) -> Background:
        if pid not in box.processes:
            raise ToolError(f"no background process {pid}; there are: {sorted(box.processes) or 'none'}")
        return box.processes[pid]

    @server.tool()
    async def process_output(
        pid: int,
        ctx: Context,
        wait: Annotated[float, Field(description="Seconds to wait for output or the end.", ge=0, le=600)] = 1.0,
        sandbox: SandboxId = None,
    ) -> ProcessOutput:
        """Read a background process's output since the last time, and its exit code if it has ended."""
        box = await boxes.of(ctx, sandbox)
        process = find(box, pid)
        async with _errors_to_model():
            stdout, stderr, exit_code = await process.take(wait)
        if exit_code is not None:
            del box.processes[pid]
        return ProcessOutput(
            stdout=stdout.decode("utf-8", "replace"), stderr=stderr.decode("utf-8", "replace"), exit_code=exit_code
        )

    @server.tool()
    async def process_input(pid: int, text: str, ctx: Context, end: bool = False, sandbox: SandboxId = None) -> None:
        """Type into a background process; `end` closes its standard input."""
        process = find(await boxes.of(ctx, sandbox), pid).process
        async with _errors_to_model():
            if text:
                await process.stdin.write(text)
            if end:
                await process.stdin.close()

    @server.tool()
    async def process_kill(pid: int, ctx: Context, signal: str = "TERM", sandbox: SandboxId = None) -> None:
        """Send a signal to a background process."""
        process = find(await boxes.of(ctx, sandbox), pid).process
        async with _errors_to_model():
            await process.kill(signal)


def _add_files(server: MCPServer[None], boxes: Boxes) -> None:
    async def read(box: Box, path: str) -> bytes:
        files = box.sandbox.files.as_user()
        if (await files.stat(path)).kind == "other":
            raise ToolError(f"{path}: not a regular file; use exec to read from it")
        return await files.read_bytes(path)

    @server.tool()
    async def read_file(
        path: str,
        ctx: Context,
        first_line: Annotated[int, Field(ge=1)] = 1,
        lines: Annotated[int, Field(ge=1, le=READ_LINES)] = READ_LINES,
        sandbox: SandboxId = None,
    ) -> FilePage:
        """Read a text file, or a page of it."""
        box = await boxes.of(ctx, sandbox)
        async with _errors_to_model():
            text = (await read(box, path)).decode()
        found = text.split("\n")[: -1 if text.endswith("\n") else None]
        page: list[str] = []
        room = READ_MAX
        for line in found[first_line - 1 : first_line - 1 + lines]:
            if page and len(line) >= room:
                break
            page.append(line)
            room -= len(line) + 1
        return FilePage(
            content="\n".join(page)[:READ_MAX],
            first_line=first_line,
            last_line=first_line - 1 + len(page),
            total_lines=len(found),
            truncated=room < -1,
        )

    @server.tool()
    async def write_file(
        path: str, content: str, ctx: Context, append: bool = False, sandbox: SandboxId = None
    ) -> None:
        """Create or replace a text file, or add to it; missing directories are made."""
        box = await boxes.of(ctx, sandbox)
        async with _errors_to_model():
            await box.sandbox.files.as_user().write(path, content, append=append)

    @server.tool()
    async def edit_file(
        path: str, old: str, new: str, ctx: Context, replace_all: bool = False, sandbox: SandboxId = None
    ) -> int:
        """Replace a string in a text file; it must occur exactly once unless `replace_all`. Gives the count."""
        box = await boxes.of(ctx, sandbox)
        if not old:
            raise ToolError("`old` is empty: give the exact text to replace")
        async with _errors_to_model():
            text = (await read(box, path)).decode()
            count = text.count(old)
            if count == 0:
                raise ToolError(f"{path}: the text to replace does not occur")
            if count > 1 and not replace_all:
                raise ToolError(f"{path}: the text occurs {count} times; give more of it, or replace_all")
            await box.sandbox.files.as_user().write(path, text.replace(old, new))
        return count

    @server.tool()
    async def list_directory(ctx: Context, path: str = "/workspace", sandbox: SandboxId = None) -> list[FileEntry]:
        """The entries of a directory."""
        box = await boxes.of(ctx, sandbox)
        async with _errors_to_model():
            entries = await box.sandbox.files.as_user().list(path)
        return [FileEntry(name=entry.name, kind=entry.kind, size=entry.size) for entry in entries]

    @server.tool()
    async def find_files(pattern: str, ctx: Context, sandbox: SandboxId = None) -> list[str]:
        """Paths that match a bash pattern, `**` included, such as /workspace/**/*.py; at most 5000."""
        box = await boxes.of(ctx, sandbox)
        async with _errors_to_model():
            return (await box.sandbox.files.glob(pattern))[:FIND_MAX]

    @server.tool()
    async def search_files(
        pattern: str, ctx: Context, path: str = "/workspace", sandbox: SandboxId = None
    ) -> list[Match]:
        """Lines below a path that match an extended regular expression; at most 500."""
        box = await boxes.of(ctx, sandbox)
        async with _errors_to_model():
            found = await box.sandbox.files.grep(pattern, path)
        return [Match(path=match.path, line=match.line, text=match.text) for match in found[:SEARCH_MAX]]

    @server.tool()
    async def delete_file(path: str, ctx: Context, recursive: bool = False, sandbox: SandboxId = None) -> None:
        """Delete a file, or with `recursive` a directory and all in it."""
        box = await boxes.of(ctx, sandbox)
        async with _errors_to_model():
            await box.sandbox.files.as_user().remove(path, recursive=recursive)

    @server.resource("sandbox:///{+path}", name="file", description="A file of your sandbox, by absolute path.")
    async def file(path: str, ctx: Context) -> str | bytes:
        return await contents(await boxes.of(ctx, None), path)

    @server.resource(
        "sandbox://{sandbox}/{+path}", name="named_file", description="A file of a sandbox that you made, by its name."
    )
    async def named_file(sandbox: str, path: str, ctx: Context) -> str | bytes:
        return await contents(await boxes.of(ctx, sandbox), path)

    async def contents(box: Box, path: str) -> str | bytes:
        try:
            data = await read(box, "/" + path)
        except (FileError, ToolError) as error:
            raise ResourceNotFoundError(str(error)) from error
        if len(data) > READ_MAX:
            raise ResourceError(f"/{path}: {len(data)} bytes are too many for a resource; use read_file")
        try:
            return data.decode()
        except UnicodeDecodeError:
            return data


def _add_interpreters(server: MCPServer[None], boxes: Boxes) -> None:
    def shown(result: RunResult) -> list[str | Image]:
        parts: list[str | Image] = [*texts(result)]
        for output in result.outputs:
            kind, _, subtype = output.mime.partition("/")
            if kind == "image":
                parts.append(Image(data=output.data, format=subtype))
        return parts or ["(no output)"]

    @server.tool(structured_output=False)
    async def python(code: str, ctx: Context, sandbox: SandboxId = None) -> list[str | Image]:
        """Run Python in your sandbox's interpreter, which keeps its variables; shows output, value and figures."""
        box = await boxes.of(ctx, sandbox)
        async with _errors_to_model():
            return shown(await box.sandbox.python.run(code))

    @server.tool(structured_output=False)
    async def javascript(code: str, ctx: Context, sandbox: SandboxId = None) -> list[str | Image]:
        """Run JavaScript (ES modules, top-level await) in your sandbox's interpreter, which keeps its variables."""
        box = await boxes.of(ctx, sandbox)
        async with _errors_to_model():
            return shown(await box.sandbox.js.run(code))


def _add_sandboxes(server: MCPServer[None], boxes: Boxes) -> None:
    @server.tool()
    async def sandbox_create(ctx: Context) -> str:
        """Make a further sandbox; gives the name to use it by."""
        async with _errors_to_model():
            return await boxes.make(ctx)

    @server.tool()
    async def sandbox_fork(ctx: Context, sandbox: SandboxId = None) -> str:
        """Branch a sandbox, live: files, processes and interpreters; gives the branch's name."""
        box = await boxes.of(ctx, sandbox)
        async with _errors_to_model():
            return await boxes.fork(box, ctx)

    @server.tool()
    async def sandbox_close(sandbox: str, ctx: Context) -> None:
        """End a sandbox and all that runs in it."""
        await boxes.close(ctx, sandbox)
