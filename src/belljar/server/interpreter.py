"""The code interpreter: Python, JavaScript and bash with rich results, in contexts that keep their variables."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import AsyncGenerator
from typing import Any, Final

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from belljar.abi.clock import Clock
from belljar.api.async_interpreter import AsyncInterpreter
from belljar.api.async_js import AsyncJsInterpreter
from belljar.api.errors import SandboxClosed, SandboxError, printable
from belljar.api.runs import Output, RunResult
from belljar.server.access import CODE_PORT, Access
from belljar.server.connect import LineStream, decode, read_body
from belljar.server.control import reply
from belljar.server.errors import ApiError, RpcError
from belljar.server.guest import HOME, Context, Guest
from belljar.server.keys_host import new_id
from belljar.server.records import Held
from belljar.server.service import Service

_CODE_MAX: Final = 16 << 20
_CONTEXTS_MAX: Final = 64
_INTERRUPT_SECONDS: Final = 2.0
_LANGUAGES: Final = {
    "python": "python",
    "python3": "python",
    "javascript": "javascript",
    "js": "javascript",
    "bash": "bash",
    "sh": "bash",
}
_KEYS: Final = {
    "text/plain": "text",
    "text/html": "html",
    "text/markdown": "markdown",
    "image/svg+xml": "svg",
    "image/png": "png",
    "image/jpeg": "jpeg",
    "application/pdf": "pdf",
    "text/latex": "latex",
    "application/json": "json",
    "application/javascript": "javascript",
}
_BINARY: Final = ("png", "jpeg", "pdf")
Event = dict[str, Any]
_GONE: Final[Event] = {}
"""The last event of a run whose sandbox has ended."""


class Execute(Struct):
    code: str
    context_id: str | None = None
    language: str | None = None
    env_vars: dict[str, str] | None = None


class NewContext(Struct):
    language: str | None = None
    cwd: str | None = None


class CodeInterpreter:
    def __init__(self, service: Service, access: Access) -> None:
        self._service = service
        self._access = access

    def endpoint(self, do: Any) -> Any:
        """A handler that knows its sandbox."""

        async def answer(request: Request) -> Response:
            held = self._access.sandbox(request, port=CODE_PORT)
            try:
                async with self._service.use(held, resume=held.record.auto_resume) as guest:
                    response: Response = await do(request, held, guest)
                    return response
            except RpcError as error:
                raise ApiError(429, error.message) from None
            except SandboxClosed:
                raise ApiError(502, "The sandbox was not found") from None
            except SandboxError as error:
                raise ApiError(500, printable(str(error))) from None

        return answer

    async def execute(self, request: Request, held: Held, guest: Guest) -> Response:
        wish = await _body(request, Execute)
        if wish.context_id and wish.language:
            raise ApiError(400, "Only one of context_id or language can be provided")
        number, language = wish.context_id, wish.language
        context = _context(guest, number) if number else _default(guest, _language(language))
        self._service.charge_exec(held.record.tenant)
        return LineStream(self._lines(held, guest, context, wish))

    async def _lines(self, held: Held, guest: Guest, context: Context, wish: Execute) -> AsyncGenerator[Event, None]:
        queue: asyncio.Queue[Event | None] = asyncio.Queue(64)

        async def run() -> None:
            try:
                async with context.lock:
                    await self._run(guest, context, wish, queue)
            except SandboxClosed:
                await queue.put(_GONE)
            except SandboxError as error:
                await queue.put(_error("SandboxError", printable(str(error)), ""))
            await queue.put({"type": "end_of_execution"})
            await queue.put(None)

        with self._service.stream(held, guest):
            task = asyncio.ensure_future(run())
            try:
                while (event := await queue.get()) is not None:
                    if event is _GONE:  # clients tell a sandbox that has ended by its connection, which breaks
                        raise ConnectionError("the sandbox ended during the run")
                    yield event
            finally:
                await _stop(task, context, queue, self._service.clock)

    async def _run(self, guest: Guest, context: Context, wish: Execute, queue: asyncio.Queue[Event | None]) -> None:
        def teller(kind: str) -> Any:
            async def tell(data: bytes) -> None:
                text = data.decode("utf-8", "replace")
                await queue.put({"type": kind, "text": text, "timestamp": round(self._service.clock.time() * 1e9)})

            return tell

        context.count += 1
        await queue.put({"type": "number_of_executions", "execution_count": context.count})
        listeners = {"on_stdout": teller("stdout"), "on_stderr": teller("stderr")}
        if context.runner is None:
            ended = await guest.sandbox.exec(wish.code, cwd=context.cwd, env=wish.env_vars, **listeners)
            if ended.exit_code:
                await queue.put(_error("ExitCode", str(ended.exit_code), f"exit status {ended.exit_code}"))
            return
        before, after = _environment(context.language, wish.env_vars or {})
        if before:
            await context.runner.run(before)
        result = await context.runner.run(wish.code, **listeners)
        for event in results(result, context.language):
            await queue.put(event)
        if after:
            await context.runner.run(after)

    async def create(self, request: Request, held: Held, guest: Guest) -> Response:
        wish = await _body(request, NewContext)
        language, cwd = _language(wish.language), wish.cwd or HOME
        if len(guest.contexts) >= _CONTEXTS_MAX:
            raise ApiError(429, f"more than {_CONTEXTS_MAX} contexts: remove some")
        context = Context(new_id(), language, cwd, _runner(guest, language, another=True))
        if not await guest.sandbox.files.exists(cwd):
            raise ApiError(400, f"cwd '{printable(cwd)}' does not exist")
        guest.contexts[context.id] = context
        if cwd != HOME and isinstance(context.runner, AsyncInterpreter):
            await context.runner.run(f"import os as _os; _os.chdir({cwd!r}); del _os")
        return reply(context.show())

    async def list_contexts(self, request: Request, held: Held, guest: Guest) -> Response:
        usual = [_default(guest, language) for language in ("python", "javascript")]
        others = [context for context in guest.contexts.values() if context not in usual]
        return reply([context.show() for context in (*usual, *others)])

    async def remove(self, request: Request, held: Held, guest: Guest) -> Response:
        context = _context(guest, request.path_params["context"])
        await context.reset()
        del guest.contexts[context.id]
        return Response(status_code=204)

    async def restart(self, request: Request, held: Held, guest: Guest) -> Response:
        await _context(guest, request.path_params["context"]).reset()
        return PlainTextResponse("Restarted")


async def _body(request: Request, shape: Any) -> Any:
    try:
        return decode(await read_body(request, _CODE_MAX) or b"{}", shape)
    except ValueError as error:
        raise ApiError(422, f"Error when parsing request: {error}") from None


def _language(name: str | None) -> str:
    language = _LANGUAGES.get((name or "python").lower())
    if language is None:
        known = ", ".join(sorted(set(_LANGUAGES.values())))
        raise ApiError(400, f"Language {str(name)[:40]!r} is not supported: there are {known}")
    return language


def _runner(guest: Guest, language: str, *, another: bool = False) -> AsyncInterpreter | AsyncJsInterpreter | None:
    if language == "bash":
        return None
    runner = guest.sandbox.python if language == "python" else guest.sandbox.js
    return runner.another() if another else runner


def _default(guest: Guest, language: str) -> Context:
    """The context of runs that name none."""
    for context in guest.contexts.values():
        if context.id == f"default-{language}":
            return context
    context = Context(f"default-{language}", language, HOME, _runner(guest, language))
    guest.contexts[context.id] = context
    return context


def _context(guest: Guest, number: str) -> Context:
    _default(guest, "python")
    context = guest.contexts.get(number)
    if context is None:
        raise ApiError(404, f"Context {number[:64]} not found")
    return context


async def _stop(task: asyncio.Task[None], context: Context, queue: asyncio.Queue[Event | None], clock: Clock) -> None:
    """End a run whose client has gone: as ^C does, so that the variables stay; if that does not help, by force."""
    if task.done():
        return
    if isinstance(context.runner, AsyncInterpreter):
        try:
            await context.runner.interrupt()
        except SandboxError:
            pass
        else:
            for _ in range(int(_INTERRUPT_SECONDS / 0.02)):
                while not queue.empty():
                    queue.get_nowait()
                if task.done():
                    return
                await clock.sleep(0.02)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _environment(language: str, variables: dict[str, str]) -> tuple[str, str]:
    """Code that sets variables of the environment for one run, and code that takes them back."""
    if not variables or language != "python":
        return "", ""
    before = (
        "import os as _os\n"
        f"_belljar_env = {{_k: _os.environ.get(_k) for _k in {list(variables)!r}}}\n"
        f"_os.environ.update({variables!r})\n"
        "del _os\n"
    )
    after = (
        "import os as _os\n"
        "for _k, _v in _belljar_env.items():\n"
        "    _os.environ.pop(_k, None) if _v is None else _os.environ.__setitem__(_k, _v)\n"
        "del _os, _belljar_env, _k, _v\n"
    )
    return before, after


def _error(name: str, value: str, traceback: str) -> Event:
    return {"type": "error", "name": name, "value": value, "traceback": traceback}


def results(result: RunResult, language: str) -> list[Event]:
    """What a run showed and gave back: each thing in all its formats."""
    groups: list[dict[str, Any]] = []
    for output in result.outputs:
        key, value = _format(output)
        if not groups or key in groups[-1] or _kind(groups[-1]) != _kind({key: 0}):
            groups.append({})
        groups[-1][key] = value
    shown: list[Event] = [{"type": "result", "is_main_result": False, **group} for group in groups]
    if result.error is not None:
        return [*shown, _error(result.error.name, result.error.message, result.error.stack or str(result.error))]
    if "default" in result.exports.unsent and shown:
        shown[-1]["is_main_result"] = True
    elif result.exports.get("default") is not None:
        value = result.exports["default"]
        text = _text(value, language)
        shown.append({"type": "result", "is_main_result": True, "text": text})
    return shown


def _kind(group: dict[str, Any]) -> str:
    return "image" if any(key in ("png", "jpeg", "pdf", "svg") for key in group) else "text"


def _format(output: Output) -> tuple[str, Any]:
    key = _KEYS.get(output.mime, "extra")
    if key == "extra":
        return key, {output.mime: b64encode(output.data).decode()}
    if key in _BINARY:
        return key, b64encode(output.data).decode()
    if key == "json":
        try:
            return key, json.loads(output.data)
        except ValueError:
            return "text", output.text
    return key, output.text


def _text(value: Any, language: str) -> str:
    """A value as clients see it: a text without its quotes."""
    if isinstance(value, str):
        return value
    return repr(value) if language == "python" else json.dumps(value, default=str)
