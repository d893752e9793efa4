"""The links of `api/` to a sandbox on a server: what differs is how it is forked, and how long it is waited for."""

from __future__ import annotations

from collections.abc import Sequence
from threading import RLock
from typing import Any, Final

from belljar.abi.clock import Clock
from belljar.abi.limits import Limits
from belljar.api.async_link_host import AsyncLink
from belljar.api.core import Conversation
from belljar.api.errors import EndedError
from belljar.api.forking import FORK_SECONDS, OnSplit
from belljar.api.link_host import Link
from belljar.api.offers import Offers
from belljar.api.operations import check_answer
from belljar.api.request import raise_failure
from belljar.api.stepper import Waits, finish, finish_async
from belljar.remote.client_host import Client, RemoteWorker, connect, why_ended
from belljar.remote.wire import EXPORTS, Open

_SHIFT: Final = 32
"""Of a session's number, in those of its requests."""


class RemoteConversation(Conversation):
    """A conversation whose end the session knows the reason of."""

    client: Client

    def branch(self) -> RemoteConversation:
        return RemoteConversation(self._next, self._clock)

    def end_of_worker(self) -> EndedError:
        return why_ended(self.client)


def parts(client: Client, clock: Clock) -> tuple[RemoteWorker, RemoteConversation, Offers]:
    """What a link to a session that has just begun is made of."""
    slot = client.welcome.slot
    return _join(client, RemoteConversation((slot << _SHIFT) + 1, clock), Offers(RLock(), slot * EXPORTS, clock))


def _join(
    client: Client, conversation: RemoteConversation, offers: Offers
) -> tuple[RemoteWorker, RemoteConversation, Offers]:
    conversation.client = client
    return RemoteWorker(client), conversation, offers


def fork(link: Any, interpreters: Sequence[int]) -> Waits[tuple[RemoteWorker, RemoteConversation, Offers]]:
    """Have the server make a branch, and take it over."""
    halves: list[tuple[RemoteConversation, Offers]] = []
    pending, frame = link.conversation.call("fork", list(interpreters))

    def answered() -> None:
        # Here and not later: the next message of the origin may close what the branch has open.
        if pending.error is None:
            halves.append((link.conversation.branch(), link.offers.branch()))

    pending.on_done = answered
    try:
        link.send(frame)
        yield link.expect(lambda: pending.done, link.clock.monotonic() + 2 * FORK_SECONDS + link.client.welcome.keeps)
        raise_failure(pending)
        token = check_answer(pending.value, str)
        client = yield link.call_blocking(lambda: connect(link.client.server, Open(token), link.clock), Client.discard)
    except BaseException:
        pending.on_done = None
        for _, offers in halves:
            offers.close()
        raise
    return _join(client, *halves[0])


class RemoteLink(Link):
    worker: RemoteWorker

    @property
    def client(self) -> Client:
        return self.worker.client

    def patience(self, wall_seconds: float | None = None) -> float:
        return super().patience(wall_seconds) + self.client.welcome.keeps

    def fork(self, interpreters: Sequence[int] = ()) -> RemoteLink:
        with self._forking:
            worker, conversation, offers = finish(fork(self, interpreters))
        branch = RemoteLink(worker, conversation, self._limits, self.clock, offers)
        if self._reader is not None:
            branch.serve_in_background()
        return branch


class AsyncRemoteLink(AsyncLink):
    worker: RemoteWorker

    @property
    def client(self) -> Client:
        return self.worker.client

    def patience(self, wall_seconds: float | None = None) -> float:
        return super().patience(wall_seconds) + self.client.welcome.keeps

    async def fork(self, interpreters: Sequence[int] = (), on_split: OnSplit | None = None) -> AsyncRemoteLink:
        assert on_split is None
        async with self._forking:
            worker, conversation, offers = await finish_async(fork(self, interpreters))
        return AsyncRemoteLink(worker, conversation, self._limits, self.clock, offers)


def begin(client: Client, limits: Limits, clock: Clock) -> RemoteLink:
    worker, conversation, offers = parts(client, clock)
    return RemoteLink(worker, conversation, limits, clock, offers)


def begin_async(client: Client, limits: Limits, clock: Clock) -> AsyncRemoteLink:
    worker, conversation, offers = parts(client, clock)
    return AsyncRemoteLink(worker, conversation, limits, clock, offers)
