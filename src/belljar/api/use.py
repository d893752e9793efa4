"""`belljar.use`: a sandbox for the time of one function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from inspect import iscoroutinefunction
from typing import Any, TypeVar, Unpack, overload

from belljar.api.async_sandbox import AsyncSandbox
from belljar.api.sandbox import Sandbox
from belljar.api.settings import SandboxOptions

T = TypeVar("T")


@overload
def use(
    fn: Callable[[AsyncSandbox], Coroutine[Any, Any, T]], **options: Unpack[SandboxOptions]
) -> Coroutine[Any, Any, T]: ...


@overload
def use(fn: Callable[[Sandbox], T], **options: Unpack[SandboxOptions]) -> T: ...


def use(fn: Callable[[Any], Any], **options: Unpack[SandboxOptions]) -> Any:
    """Make a sandbox, give it to a function, close it, and return what the function returned.

    An async function gets an `AsyncSandbox`, and the call is awaited. The options are those of `Sandbox`.

    >>> belljar.use(lambda sandbox: sandbox.exec("echo hi").stdout)
    'hi\\n'
    """
    if not callable(fn):
        raise TypeError(f"belljar.use takes a function of a sandbox, not {type(fn).__name__}")
    if iscoroutinefunction(fn) or iscoroutinefunction(getattr(fn, "__call__", None)):  # noqa: B004 - an object's own
        return _use_async(fn, options)
    with Sandbox(**options) as sandbox:
        result = fn(sandbox)
        if isinstance(result, Awaitable):
            if isinstance(result, Coroutine):
                result.close()
            raise TypeError("belljar.use: the function returned an awaitable: define it by `async def`")
        return result


async def _use_async(fn: Callable[[AsyncSandbox], Coroutine[Any, Any, T]], options: SandboxOptions) -> T:
    async with AsyncSandbox(**options) as sandbox:
        return await fn(sandbox)
