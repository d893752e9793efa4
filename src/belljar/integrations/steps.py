"""One description of an operation for two fronts: what to call on a sandbox, step by step, and both ways to run it.

An operation is a generator that yields calls and is sent their results; what a call raises is raised at the yield.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any, NamedTuple, TypeVar

from belljar.api.async_sandbox import AsyncSandbox
from belljar.api.errors import SandboxError
from belljar.api.sandbox import Sandbox
from belljar.api.stepper import Waits, driven, finish, finish_async

T = TypeVar("T")


class Do(NamedTuple):
    """A method of a sandbox, or of its files as commands may use them (`files.read`), and its arguments."""

    method: str
    arguments: tuple[Any, ...] = ()
    options: dict[str, Any] = {}  # noqa: RUF012 - never changed


Operation = Generator[Do, Any, T]


def do(method: str, *arguments: Any, **options: Any) -> Operation[Any]:
    return (yield Do(method, arguments, options))


def _waits(sandbox: Sandbox | AsyncSandbox, operation: Operation[T]) -> Waits[T]:
    def perform(step: Do) -> Waits[Any]:
        target, _, name = step.method.rpartition(".")
        return (yield getattr(sandbox.files.as_user() if target else sandbox, name)(*step.arguments, **step.options))

    return driven(operation, perform, SandboxError)


def run(sandbox: Sandbox | AsyncSandbox, operation: Operation[T]) -> T:
    """Run an operation synchronously. TypeError for a sandbox that can only be awaited."""
    if isinstance(sandbox, AsyncSandbox):
        raise TypeError("this adapter holds an AsyncSandbox: use its async methods, or give it a Sandbox")
    return finish(_waits(sandbox, operation))


async def run_async(sandbox: Sandbox | AsyncSandbox, operation: Operation[T]) -> T:
    """Run an operation asynchronously; a synchronous sandbox works on a thread meanwhile."""
    if isinstance(sandbox, Sandbox):
        return await asyncio.to_thread(run, sandbox, operation)
    return await finish_async(_waits(sandbox, operation))
