"""An interpreter for each conversation: live while this process has it, from its saved variables where it has not.

A conversation's state, which its framework keeps, holds two things of ours: which interpreter is its own, by a token,
and the variables as they were saved last, with the ref of a snapshot of the files if there is a store for it. The
interpreter is used as it is if it is still at that point; otherwise (another process, or an earlier point of the
conversation that somebody goes on from) a new one starts from what was saved.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final, Literal

from belljar.api.await_host import exclusive
from belljar.api.clock_host import new_id
from belljar.api.errors import SandboxError, SnapshotError
from belljar.api.interpreter import Interpreter
from belljar.api.js import JsInterpreter
from belljar.api.sandbox import Sandbox
from belljar.api.saved import MAX_BYTES, SavedVariables
from belljar.store.store import Store

Language = Literal["python", "js"]
_LANGUAGES: Final[dict[Language, Any]] = {"python": "python", "js": "javascript"}
_EVERYTHING: Final = "all variables"
_HARD: Final = 4
"""Multiple of the intended number of interpreters at which even one with unsaved variables is ended."""

logger = logging.getLogger("belljar")


class Talk:
    """One conversation's interpreter."""

    def __init__(
        self, interpreter: Interpreter | JsInterpreter, sandbox: Sandbox, saved: bytes | None, *, own: bool, told: str
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
        self.files = told
        """Notice that files are not as the model left them; "": they are."""
        self.told = ""
        """Notice to show before a result: that variables or files are not as the model left them."""

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
        store: Store | None = None,
        key: bytes = b"",
        max_bytes: int = MAX_BYTES,
        most: int = 32,
        leave_out: Iterable[str] = (),
    ) -> None:
        self._language = language
        self._sandbox = sandbox
        self._store = store
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
        talk = self._find(token, saved, context)
        with talk.lock:
            if not talk.interpreter.started and talk.saved is not None:
                self._restore(talk, talk.saved, context, functions)
            yield talk

    def _find(self, token: str, saved: bytes | None, context: str) -> Talk:
        with self._lock:
            talk = self._talks.get(token)
            if talk is not None and talk.saved != saved:  # it has gone on from where this begins
                self._talks.pop(token).close()
                talk = None
            if talk is None:
                self._make_room()
                talk = self._talks[token] = self._make(saved, context)
            self._talks.move_to_end(token)
            talk.changed = True  # here, so that nobody makes room of it
            return talk

    def _make(self, saved: bytes | None, context: str) -> Talk:
        sandbox, told = (self._sandbox, "") if self._sandbox is not None else self._new_sandbox(saved, context)
        interpreter = (sandbox.python if self._language == "python" else sandbox.js).another()
        return Talk(interpreter, sandbox, saved, own=sandbox is not self._sandbox, told=told)

    def _new_sandbox(self, saved: bytes | None, context: str) -> tuple[Sandbox, str]:
        """A sandbox with the files that were kept, and what to tell the model if there are none."""
        if saved is None:
            return Sandbox(), ""
        why = ""
        try:
            if self._store is not None and (ref := SavedVariables.unseal(saved, self._key, context).files):
                return Sandbox.restore(ref, self._store), ""
        except SandboxError as error:
            logger.warning("the files of a conversation are lost: %s", error)
            why = f": {error}"
        return Sandbox(), f" Files that programs wrote are gone{why}."

    def _make_room(self) -> None:
        """End what was used longest ago, as long as the conversation's state has its variables."""
        if len(self._talks) < self._most:
            return
        for token, talk in self._talks.items():
            if not talk.changed or len(self._talks) >= _HARD * self._most:
                self._talks.pop(token).close()
                return

    def _restore(self, talk: Talk, sealed: bytes, context: str, functions: dict[str, Any]) -> None:
        files, talk.files = talk.files, ""
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
            files = self._keep_files(talk) if context else ""  # nothing goes on from a conversation without a name
            if not talk.interpreter.started and not files:
                # A limit has ended it: the next program begins with what was saved last.
                talk.changed = False
                return None
            talk.saved = replace(self._variables(talk, context), files=files).seal(self._key, context)
            talk.changed = False
            return talk.saved

    def _variables(self, talk: Talk, context: str) -> SavedVariables:
        try:
            if talk.interpreter.started:
                return talk.interpreter.save(max_bytes=self._max_bytes, leave_out=self._leave_out)
            if talk.saved is not None:
                return SavedVariables.unseal(talk.saved, self._key, context)
        except SandboxError as error:
            logger.warning("the variables of a conversation can't be saved: %s", error)
            return SavedVariables(_LANGUAGES[self._language], b"", {_EVERYTHING: str(error)})
        return SavedVariables(_LANGUAGES[self._language], b"", {})

    def _keep_files(self, talk: Talk) -> str:
        """The ref of a snapshot of a conversation's own sandbox; "" if there is no store, or it failed."""
        if self._store is None or not talk.own:
            return ""
        try:
            return talk.sandbox.snapshot(store=self._store).ref
        except SandboxError as error:
            logger.warning("the files of a conversation can't be kept: %s", error)
            return ""

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
