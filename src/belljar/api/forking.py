"""Forking a live sandbox, as both fronts do it: the request, and what its branch starts from."""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol, Self

from belljar.abi.errno import ENOSYS, EPERM, strerror
from belljar.abi.wire import Failure
from belljar.api.core import Conversation, Pending
from belljar.api.engines_host import EngineBroker, EngineCopies
from belljar.api.errors import ENDED, EndedError, SandboxClosed, SandboxError
from belljar.api.offers import Offers
from belljar.api.request import raise_failure
from belljar.api.stepper import Link, Waits
from belljar.engines.errors import EngineUnavailable
from belljar.owner.handle_host import WorkerHandle, WorkerUnavailable

OnSplit = Callable[[Conversation], None]
"""Called at the moment at which the worker splits in two, with the branch's side of the conversation."""

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
        self,
        conversation: Conversation,
        offers: Offers,
        interpreters: Iterable[int],
        engines: Iterable[int],
        on_split: OnSplit | None = None,
    ) -> None:
        self._conversation = conversation
        self._offers = offers
        self._on_split = on_split
        self._halves: tuple[Conversation, Offers] | None = None
        copied = list(engines)
        self.pending, self.frame = conversation.call("fork", list(interpreters), copied, fds=1 + len(copied))
        self.pending.on_done = self._answered

    def _answered(self) -> None:
        # Here and not later: the next message of the origin may close what the branch has open.
        if self.pending.error is None:
            self._halves = self._conversation.branch(), self._offers.branch()
            if self._on_split is not None:
                self._on_split(self._halves[0])

    def check(self) -> None:
        """Raises SandboxError if the worker did not fork."""
        error = self.pending.error
        if isinstance(error, ENDED):
            raise error
        if isinstance(error, Failure):
            if error.errno in (ENOSYS, EPERM):
                raise SandboxError(
                    "this sandbox can't be forked: its kernel does not ask about forks (seccomp user notification, "
                    "Linux 5.5 or later), the limit on descriptors is too low for it (ulimit -n; 64 will do), or its "
                    "zygote is gone. `belljar doctor` tells; a new sandbox may do."
                )
            raise SandboxError(f"the sandbox could not be forked: {strerror(error.errno)}")

    def halves(self) -> tuple[Conversation, Offers]:
        """The branch's own."""
        assert self._halves is not None
        return self._halves

    def abandon(self) -> None:
        """Nothing came of it."""
        self.pending.on_done = None
        if self._halves is not None:
            self._halves[1].close()


class ForkedLink(Link, Protocol):
    """A link that can be forked."""

    offers: Offers
    last_fork: Pending | None

    @property
    def worker(self) -> WorkerHandle: ...
    @property
    def engines(self) -> EngineBroker: ...
    def fail(self, error: EndedError) -> None: ...
    def twin(self, worker: WorkerHandle, conversation: Conversation, offers: Offers | None = None) -> Self: ...
    def close(self) -> None: ...

    def wait_readable(self, fd: int, deadline: float) -> Any:
        """Wait until a descriptor is readable. Give False if the (monotonic) deadline passed first."""


def fork_link(link: Any, interpreters: Sequence[int], on_split: OnSplit | None = None) -> Waits[Any]:
    """Make a link to a new branch of the worker, with the same offers. Raises SandboxError.

    `interpreters` are the commands that the branch goes on with: those that wait for their next run.
    """
    copies: EngineCopies = yield from _copy_engines(link, interpreters)
    try:
        branch = yield from _fork(link, interpreters, copies, on_split)
    except BaseException:
        copies.close()
        raise
    try:
        branch.engines.adopt(copies)
    except EngineUnavailable as error:
        branch.close()
        raise SandboxError(f"could not fork the sandbox: {error}") from error
    return branch


def _copy_engines(link: ForkedLink, interpreters: Sequence[int]) -> Waits[EngineCopies]:
    """Copies of the engine processes that can be copied now; the worker holds them still until it is forked."""
    if not interpreters and not link.engines.busy:
        return EngineCopies()
    held = Held(link.conversation, interpreters)
    link.send(held.frame)
    try:
        yield link.expect(lambda: held.pending.done)
        numbers = held.numbers()
        copies: EngineCopies = yield link.call_blocking(lambda: link.engines.copy(numbers), EngineCopies.close)
        try:
            held.check(copies.made, copies.failed)
        except BaseException:
            copies.close()
            raise
    except BaseException:
        if not link.closed:
            link.send(link.conversation.call("release")[1])
        raise
    return copies


def _fork(
    link: ForkedLink, interpreters: Sequence[int], copies: EngineCopies, on_split: OnSplit | None
) -> Waits[ForkedLink]:
    from belljar.owner.branch_host import Branching  # few sandboxes are forked

    if (earlier := link.last_fork) is not None:
        # Its caller may have been cancelled; the worker forks nonetheless, and would have ever more forks to do.
        yield link.expect(lambda: earlier.done)
    fork = Fork(link.conversation, link.offers, interpreters, copies.made, on_split)
    link.last_fork = fork.pending
    making = Branching(link.worker)
    try:
        link.send(fork.frame, [making.permit(), *copies.descriptors()])
        deadline = link.clock.monotonic() + FORK_SECONDS
        answered = yield link.wait_until(lambda: fork.pending.done, deadline)
        fork.check()
        if not answered or not (yield link.wait_readable(making.fileno(), deadline)):
            stopped = SandboxClosed("the sandbox stopped answering while it was forked, and was ended")
            link.fail(stopped)
            raise stopped
        worker = making.accept(0)
    except WorkerUnavailable as error:
        making.abandon()
        fork.abandon()
        raise SandboxError(f"could not fork the sandbox: {error}. Try `belljar doctor`.") from error
    except BaseException:
        making.abandon()
        fork.abandon()
        raise
    return link.twin(worker, *fork.halves())
