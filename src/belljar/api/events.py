"""Events of a sandbox, told to its owner as they happen: the constructor's `on_event`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from belljar.api.changes import changes_from
from belljar.api.core import telling

if TYPE_CHECKING:
    from belljar.abi.clock import Clock
    from belljar.api.core import Conversation, Pending


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `data` depends on `kind`:

    - exec: `action` start (`id`, `argv`, `cwd`) or end (`id`, `exit_code`, `limit`); of `exec`, `spawn` and `pty`
    - file: `action` created, modified, deleted, renamed, attributes or overflow; `path`, and `to` of a rename
    - incident: a bug of ours ended one process: its `id`, which the guest saw, the `command` and a `trace`
    - limit: `limit`, a field of `Limits`, and the `id` of the command it stopped
    - refused: a file of the host's that a guest may not change: its `path` there, the `rule`, and `why` there is one
    - store: a file of a snapshot can't be read, and the guest sees EIO; the `error` in words
    - dropped: the sandbox goes on from a snapshot with `containers` (their names), which its tier has not
    - network: what was asked for, and the verdict
    """

    kind: str
    time: float
    sandbox: str
    data: dict[str, Any]


OnEvent = Callable[[Event], object]
"""Called on the thread (or loop) that hears of it: be quick, and don't use the sandbox there. What it raises is logged,
and stops nothing."""


class Events:
    """Turns what passes through a conversation into events."""

    def __init__(
        self, name: str, on_event: OnEvent, conversation: Conversation, clock: Clock, *, awaited: bool = False
    ) -> None:
        """`awaited`: on an event loop, where nobody waits inside of `on_event`."""
        self._name = name
        self._clock = clock
        self._on_event = on_event
        self._conversation = conversation
        self._watch = 0
        self._told: object = None if awaited else conversation
        conversation.observe = self.emit

    def emit(self, kind: str, data: dict[str, Any]) -> None:
        event = Event(kind, self._clock.time(), self._name, data)
        before = telling.set(self._told)
        try:
            self._on_event(event)
        except Exception:
            import logging  # only now: most programs never need it

            logging.getLogger("belljar").exception("on_event of sandbox %s raised for a %r event", self._name, kind)
        finally:
            telling.reset(before)

    def watch_files(self) -> bytes:
        """The frame that asks for changes of files; from then on each answer is followed by the next question."""
        pending, frame = self._conversation.call("watch", b"/", True)
        pending.on_done = lambda: self._watching(pending)
        return frame

    def _watching(self, pending: Pending) -> None:
        if pending.error is None and isinstance(pending.value, int):
            self._watch = pending.value
            self._ask()

    def _ask(self) -> None:
        pending, frame = self._conversation.call("changes", self._watch)
        pending.on_done = lambda: self._changed(pending)
        self._conversation.outbox.append(frame)

    def _changed(self, pending: Pending) -> None:
        if pending.error is not None:
            return  # the sandbox has ended
        for change in changes_from(pending.value):
            self.emit("file", {"action": change.kind, "path": change.path, "to": change.to})
        self._ask()
