"""greenlet's interface, as far as `kernel/fiber.py` uses it, on the stacks of page/stacks.mjs.

Installed as the top-level module `greenlet`.
"""

from __future__ import annotations

from collections.abc import Callable

import _stacks

_switch = _stacks.switch
_free: list[int] = []
"""Numbers of stacks whose greenlets have ended."""
_made = 0
_current: greenlet | None = None


class greenlet:
    """One stack. Its `run` may switch to any other that is not dead; when it ends, its parent goes on."""

    def __init__(self, run: Callable[[], object], parent: greenlet | None = None) -> None:
        global _made
        self.run = run
        self.parent = parent
        self.dead = False
        self._error: BaseException | None = None
        """Raised in this greenlet when it goes on: what ended a child."""
        if _free:
            self._number = _free.pop()
        else:
            self._number = _made = _made + 1
        _stacks.begin(self._number, self._main)

    def _main(self) -> None:
        global _current
        _stacks.guard()
        try:
            self.run()
        except BaseException as error:
            if self.parent is None:
                raise
            self.parent._error = error
        finally:
            self.dead = True
            _free.append(self._number)
            _current = self.parent
            if _current is not None:
                _stacks.ends(_current._number)

    def switch(self) -> None:
        global _current
        me = _current
        if me is None:
            raise RuntimeError("only what start() runs may switch")
        if self is me:
            return
        _current = self
        _switch(self._number)
        if me._error is not None:
            error, me._error = me._error, None
            raise error


def getcurrent() -> greenlet | None:
    return _current


def start(run: Callable[[], object]) -> None:
    """Start the first greenlet, on which the hub is made and run. Called by JavaScript, once."""
    global _current
    _current = greenlet(run)
    _stacks.wake(_current._number)


def wait(seconds: float | None) -> None:
    """Let the worker's event loop run until something came from there, or the time is up."""
    _stacks.expect(None if seconds is None else seconds * 1000)
    _switch(0)
