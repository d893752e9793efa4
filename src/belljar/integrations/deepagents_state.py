"""Deep Agents: a sandbox for each conversation, whose files are part of the conversation's checkpoints.

>>> files = SnapshotMiddleware(store)
>>> agent = create_deep_agent(model, backend=files.backend, middleware=[files], checkpointer=checkpointer)
"""

from __future__ import annotations

import asyncio
import hmac
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, NotRequired, Unpack

from belljar.abi.dataclass import dataclass
from belljar.api.await_host import exclusive
from belljar.api.errors import SnapshotError
from belljar.api.sandbox import Sandbox
from belljar.api.saved import TAG_BYTES, tag
from belljar.api.settings import RestoreOptions
from belljar.integrations.deepagents import BelljarSandbox
from belljar.integrations.extras import needs
from belljar.remote.choice import make_sandbox, restore_sandbox
from belljar.store.store import Store

with needs("langchain"):
    from langchain.agents.middleware import AgentMiddleware, AgentState
    from langchain.agents.middleware.types import PrivateStateAttr
    from langgraph.config import get_config

_KEY = "belljar_files"


class _State(AgentState[Any]):
    belljar_files: NotRequired[Annotated[bytes | None, PrivateStateAttr]]


@dataclass(slots=True)
class _Live:
    """The sandbox of a conversation, and the state of the conversation that it is at, or has gone on from."""

    sandbox: Sandbox
    state: bytes | None
    used: bool = False


class SnapshotMiddleware(AgentMiddleware[Any, Any, Any]):
    """Keeps the files of each conversation in its checkpoints: whoever goes on with it, from its end or from an
    earlier message, has them as they were there.

    - `store`: where snapshots are kept; the default store if you give none.
    - `key`: seals their refs, so that nobody who can write to the checkpoints can choose another snapshot.
    - `timeout`: seconds for a command that names none.
    - `max_conversations`: sandboxes that live at a time; the one used longest ago is closed first.
    - `url`: a server that its sandboxes are on, with the key that BELLJAR_KEY has
    - all others are arguments of `Sandbox`.

    One run of a conversation at a time. Give the agent `backend` as its backend.
    """

    state_schema = _State

    def __init__(
        self,
        store: Store | None = None,
        *,
        key: bytes = b"",
        timeout: float | None = None,
        max_conversations: int = 32,
        url: str | None = None,
        **options: Unpack[RestoreOptions],
    ) -> None:
        super().__init__()
        self._store = store
        self._key = key
        self._most = max_conversations
        self._options: dict[str, Any] = {**options, "url": url} if url is not None else dict(options)
        self._live: OrderedDict[str, _Live] = OrderedDict()
        self._lock = exclusive()
        self.backend = _Backend(self._use, timeout)
        self.tools = []

    def before_agent(self, state: Any, runtime: Any) -> None:
        """Begin a turn with the files that the conversation had here."""
        self._enter(state, afresh=True)

    async def abefore_agent(self, state: Any, runtime: Any) -> None:
        await asyncio.to_thread(self.before_agent, state, runtime)

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        self._enter(request.state)  # a run may begin here: after a person's approval, or from an earlier point
        return handler(request)

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        await asyncio.to_thread(self._enter, request.state)
        return await handler(request)

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Keep the files, if tools have used them."""
        with self._lock:
            live = self._live.get(_thread())
            if live is None or not live.used:
                return None
            live.state = self._seal(live.sandbox.snapshot(store=self._store).ref)
            live.used = False
            return {_KEY: live.state}

    async def abefore_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        return await asyncio.to_thread(self.before_model, state, runtime)

    def after_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """End a turn. A conversation without a name ends with it."""
        if _thread():
            return self.before_model(state, runtime)  # a tool whose result is the answer ran last
        with self._lock:
            if (live := self._live.pop("", None)) is not None:
                live.sandbox.close()
        return None

    async def aafter_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        return await asyncio.to_thread(self.after_agent, state, runtime)

    def close(self) -> None:
        """End the sandboxes. What was kept can still be gone on from."""
        with self._lock:
            while self._live:
                self._live.popitem()[1].sandbox.close()

    def _use(self) -> Sandbox:
        """The sandbox of the conversation that asks."""
        with self._lock:
            live = self._find(_thread(), None)
            live.used = True
            return live.sandbox

    def _enter(self, state: Any, *, afresh: bool = False) -> None:
        """Have the sandbox be at a state of the conversation; with `afresh`, exactly there."""
        kept = state.get(_KEY)
        thread = _thread()
        with self._lock:
            live = self._live.get(thread)
            if live is not None and (live.state != kept or (afresh and live.used)):
                self._live.pop(thread).sandbox.close()
            self._find(thread, kept)

    def _find(self, thread: str, kept: bytes | None) -> _Live:
        live = self._live.get(thread)
        if live is None:
            if len(self._live) >= self._most:
                idle = (name for name, other in self._live.items() if not other.used)
                self._live.pop(next(idle, next(iter(self._live)))).sandbox.close()
            live = self._live[thread] = _Live(self._open(kept), kept)
        self._live.move_to_end(thread)
        return live

    def _open(self, kept: bytes | None) -> Sandbox:
        if kept is None:
            return make_sandbox(self._options)  # type: ignore[arg-type]
        options = {name: value for name, value in self._options.items() if name != "files"}  # it has them, or not
        return restore_sandbox(self._unseal(kept), self._store, options)  # type: ignore[arg-type]

    def _seal(self, ref: str) -> bytes:
        return tag(self._key, f"files of {_thread()}", ref.encode()) + ref.encode()

    def _unseal(self, kept: object) -> str:
        if not isinstance(kept, bytes):
            raise SnapshotError("the conversation's state has something else in the place of its files")
        told, ref = kept[:TAG_BYTES], kept[TAG_BYTES:]
        if not hmac.compare_digest(told, tag(self._key, f"files of {_thread()}", ref)):
            raise SnapshotError("the ref of the conversation's files was changed, or sealed with another key")
        return ref.decode()


class _Backend(BelljarSandbox):
    """Files and shell of the sandbox of the conversation at hand."""

    def __init__(self, find: Callable[[], Sandbox], timeout: float | None) -> None:
        self._find = find
        self._timeout = timeout

    @property
    def _sandbox(self) -> Sandbox:  # type: ignore[override]
        return self._find()

    @property
    def id(self) -> str:
        return f"belljar-{_thread() or 'conversation'}"


def _thread() -> str:
    """The conversation's thread id; empty if it has none."""
    try:
        config = get_config()
    except RuntimeError:  # outside of an agent
        return ""
    return str(config.get("configurable", {}).get("thread_id", ""))
