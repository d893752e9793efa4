"""Forking a live sandbox, as both fronts do it: the request, and what its branch starts from."""

from __future__ import annotations

import sys
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Final

from belljar.abi.errno import ENOSYS, EPERM, strerror
from belljar.abi.limits import Limits
from belljar.abi.wire import Failure
from belljar.api.core import Conversation
from belljar.api.errors import SandboxError
from belljar.api.offers import Offers
from belljar.api.request import raise_failure

FORK_SECONDS: Final = 30.0
"""How long a worker may take to fork."""


def check_count(count: object) -> int:
    if isinstance(count, bool) or not isinstance(count, int):
        raise TypeError(f"count must be an int, not {type(count).__name__}")
    if count < 1:
        raise ValueError(f"count must be at least 1, not {count}")
    return count


def check_origin(zygote: object) -> None:
    """A worker forks when its zygote lets it. Raises SandboxError for one that has none."""
    if zygote is None:
        raise SandboxError(
            "this sandbox can't be forked: its worker was started alone, not made by a zygote that could let it fork"
            + ("" if sys.platform == "linux" else "; sandboxes are forked on Linux only")
        )


class Held:
    """The engine processes that a sandbox holds still, so that copies can be made of them: it is to be forked."""

    def __init__(self, conversation: Conversation, interpreters: Sequence[int]) -> None:
        self._conversation = conversation
        self._wanted = interpreters
        self._driven: dict[int, int] = {}
        """The engines of interpreters."""
        self.pending, self.frame = conversation.call("hold", list(interpreters))

    def numbers(self) -> list[int]:
        """Raises SandboxError if one of the interpreters that wait for their next run is not among them."""
        raise_failure(self.pending)
        match self.pending.value:
            case [*pairs] if all(_is_pair(pair) for pair in pairs):
                self._driven = {job: engine for engine, job in pairs if job}
                if not set(self.interpreters) <= self._driven.keys():
                    raise SandboxError("the sandbox could not be forked: its interpreter does not come to rest")
                return [engine for engine, _ in pairs]
        raise SandboxError("the sandbox could not be forked: what it says of its interpreters makes no sense")

    @property
    def interpreters(self) -> list[int]:
        """Those that have not ended meanwhile."""
        return [job for job in self._wanted if self._conversation.waits_for(job)]

    def check(self, copied: Container[int], reasons: Mapping[int, str]) -> None:
        """Every interpreter that is to go on in the branch must have a copy. Raises SandboxError."""
        for job in self.interpreters:
            engine = self._driven[job]
            if engine not in copied:
                why = reasons.get(engine, "it ended")
                raise SandboxError(f"the sandbox could not be forked, because of its interpreter: {why}")


def _is_pair(pair: object) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and all(type(number) is int for number in pair)


class Fork:
    """A fork under way. The branch's side of the conversation begins where the worker split in two: at its answer.

    `interpreters` are the commands that the branch's owner goes on with, `engines` those whose copies go with it.
    """

    def __init__(
        self, conversation: Conversation, offers: Offers, interpreters: Iterable[int], engines: Iterable[int]
    ) -> None:
        self._conversation = conversation
        self._offers = offers
        self._halves: tuple[Conversation, Offers] | None = None
        copied = list(engines)
        self.pending, self.frame = conversation.call("fork", list(interpreters), copied, fds=1 + len(copied))
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
                    "Linux 5.5 or later), the limit on descriptors is too low for it (ulimit -n; 64 will do), or its "
                    "zygote is gone. `belljar doctor` tells; a new sandbox may do."
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
