"""An interpreter for each conversation: live while this process has it, from its saved variables where it has not.

A conversation's state, which its framework keeps, holds two things of ours: which interpreter is its own, by a token,
and the variables as they were saved last. The interpreter is used as it is if it is still at that point; otherwise
(another process, or an earlier point of the conversation that somebody goes on from) a new one starts from what was
saved.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Literal

from belljar.api.await_host import exclusive
from belljar.api.clock_host import new_id
from belljar.api.errors import SandboxError, SnapshotError
from belljar.api.interpreter import Interpreter
from belljar.api.js import JsInterpreter
from belljar.api.sandbox import Sandbox
from belljar.api.saved import MAX_BYTES, SavedVariables

Language = Literal["python", "js"]
_LANGUAGES: Final[dict[Language, Any]] = {"python": "python", "js": "javascript"}
_EVERYTHING: Final = "all variables"
_HARD: Final = 4
"""Multiple of the intended number of interpreters at which even one with unsaved variables is ended."""

logger = logging.getLogger("belljar")


class Talk:
    """One conversation's interpreter."""

    def __init__(
        self, interpreter: Interpreter | JsInterpreter, sandbox: Sandbox, saved: bytes | None, *, own: bool
    ) -> None:
        self.interpreter = interpreter
        self.sandbox = sandbox
        self.own = own
        """Whether the sandbox is the conversation's own."""
        self.saved = saved
        """The copy in the conversation's state."""
        self.changed = False
        self.lock = exclusive()
        self.skills: dict[str, str] = {}
        """The directories of the skills that it can import, by name."""
        self.told = ""
        """Notice to show before a result: that variables are not as the model left them."""

    def close(self) -> None:
        if isinstance(self.interpreter, JsInterpreter):
            self.interpreter.close()
        else:
            self.interpreter.reset()
        if self.own:
            self.sandbox.close()


class Conversations:
    """The interpreters of one agent. `leave_out` are variables that are not the programs' own."""

    def __init__(
        self,
        language: Language,
        *,
        sandbox: Sandbox | None = None,
        key: bytes = b"",
        max_bytes: int = MAX_BYTES,
        most: int = 32,
        leave_out: Iterable[str] = (),
    ) -> None:
        self._language = language
        self._sandbox = sandbox
        self._key = key
        self._max_bytes = max_bytes
        self._most = most
        self._leave_out = tuple(leave_out)
        self._talks: OrderedDict[str, Talk] = OrderedDict()
        self._lock = exclusive()

    def begin(self, token: str | None, saved: bytes | None, *, afresh: bool = False) -> str:
        """Begin a turn; return its token. If another one began already, this one gets an interpreter of its own."""
        new = new_id()
        with self._lock:
            talk = self._talks.get(token) if token is not None else None
            if token is not None and talk is not None and not talk.changed and talk.saved == saved and not afresh:
                self._talks[new] = self._talks.pop(token)
        return new

    @contextmanager
    def use(self, token: str, saved: bytes | None, context: str, functions: dict[str, Any]) -> Iterator[Talk]:
        """The interpreter of a turn, with its variables; nobody else uses it meanwhile."""
        talk = self._find(token, saved)
        with talk.lock:
            if not talk.interpreter.started and talk.saved is not None:
                self._restore(talk, talk.saved, context, functions)
            yield talk

    def _find(self, token: str, saved: bytes | None) -> Talk:
        with self._lock:
            talk = self._talks.get(token)
            if talk is not None and talk.saved != saved:  # it has gone on from where this begins
                self._talks.pop(token).close()
                talk = None
            if talk is None:
                self._make_room()
                talk = self._talks[token] = self._make(saved)
            self._talks.move_to_end(token)
            talk.changed = True  # here, so that nobody makes room of it
            return talk

    def _make(self, saved: bytes | None) -> Talk:
        sandbox = Sandbox() if self._sandbox is None else self._sandbox
        interpreter = (sandbox.python if self._language == "python" else sandbox.js).another()
        return Talk(interpreter, sandbox, saved, own=sandbox is not self._sandbox)

    def _make_room(self) -> None:
        """End what was used longest ago, as long as the conversation's state has its variables."""
        if len(self._talks) < self._most:
            return
        for token, talk in self._talks.items():
            if not talk.changed or len(self._talks) >= _HARD * self._most:
                self._talks.pop(token).close()
                return

    def _restore(self, talk: Talk, sealed: bytes, context: str, functions: dict[str, Any]) -> None:
        files = " Files that programs wrote are gone." if talk.own else ""
        try:
            saved = SavedVariables.unseal(sealed, self._key, context)
            lost = talk.interpreter.load(saved, globals=functions) if saved.data else {}
        except SnapshotError as error:
            logger.warning("the variables of a conversation are lost: %s", error)
            talk.told = f"[A new interpreter. The variables of earlier programs are gone: {error}.{files}]"
            return
        missing = {**saved.left_out, **lost}
        names = "; ".join(f"{name} ({why})" for name, why in missing.items())
        without = f", but for these, which are gone: {names}." if names else "."
        talk.told = f"[A new interpreter, with the variables of earlier programs{without}{files}]"

    def save(self, token: str | None, context: str) -> bytes | None:
        """The variables now, for the conversation's state; None if nothing ran since the last time."""
        talk = self._talks.get(token) if token is not None else None
        if talk is None or not talk.changed:
            return None
        with talk.lock:
            if not talk.interpreter.started:  # a limit has ended it: the next program begins with what was saved last
                talk.changed = False
                return None
            try:
                saved = talk.interpreter.save(max_bytes=self._max_bytes, leave_out=self._leave_out)
            except SandboxError as error:
                logger.warning("the variables of a conversation can't be saved: %s", error)
                saved = SavedVariables(_LANGUAGES[self._language], b"", {_EVERYTHING: str(error)})
            talk.saved = saved.seal(self._key, context)
            talk.changed = False
            return talk.saved

    def interrupt(self, token: str | None) -> None:
        """End what runs now; the next program starts from what was saved last."""
        if token is not None and (talk := self._talks.get(token)) is not None:
            talk.interpreter.reset()

    def end(self, token: str | None) -> None:
        """End a conversation's interpreter."""
        if token is not None and (talk := self._talks.pop(token, None)) is not None:
            talk.close()

    def close(self) -> None:
        while self._talks:
            self._talks.popitem()[1].close()
