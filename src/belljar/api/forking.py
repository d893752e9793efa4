"""Forking a live sandbox, as both fronts do it: the request, and what its branch starts from."""

from __future__ import annotations

from errno import ENOSYS, EPERM
from typing import Final

from belljar.abi.errors import strerror
from belljar.abi.limits import Limits
from belljar.abi.wire import Failure
from belljar.api.core import Conversation
from belljar.api.errors import SandboxError
from belljar.api.offers import Offers

FORK_SECONDS: Final = 30.0
"""How long a worker may take to fork."""


def check_count(count: object) -> int:
    if isinstance(count, bool) or not isinstance(count, int):
        raise TypeError(f"count must be an int, not {type(count).__name__}")
    if count < 1:
        raise ValueError(f"count must be at least 1, not {count}")
    return count


class Fork:
    """A fork under way. The branch's side of the conversation begins where the worker split in two: at its answer."""

    def __init__(self, conversation: Conversation, offers: Offers) -> None:
        self._conversation = conversation
        self._offers = offers
        self._halves: tuple[Conversation, Offers] | None = None
        self.pending, self.frame = conversation.call("fork", fds=1)
        self.pending.on_done = self._answered

    def _answered(self) -> None:
        # Here and not later: the next message of the origin may close what the branch has open.
        if self.pending.error is None:
            self._halves = self._conversation.branch(), self._offers.branch()

    def check(self) -> None:
        """Raises SandboxError if the worker did not fork."""
        error = self.pending.error
        if isinstance(error, SandboxError):
            raise error
        if isinstance(error, Failure):
            if error.errno in (ENOSYS, EPERM):
                raise SandboxError(
                    "this sandbox can't be forked: its kernel does not ask about forks (seccomp user notification, "
                    "Linux 5.5 or later), or its zygote is gone. `belljar doctor` tells; a new sandbox may do."
                )
            raise SandboxError(f"the sandbox could not be forked: {strerror(error.errno)}")

    def halves(self, limits: Limits) -> tuple[Conversation, Limits, Offers]:
        """What the branch's link is made of."""
        assert self._halves is not None
        conversation, offers = self._halves
        return conversation, limits, offers

    def abandon(self) -> None:
        """Nothing came of it."""
        self.pending.on_done = None
        if self._halves is not None:
            self._halves[1].close()
