"""What both fronts of a remote sandbox have in common: the server, the hello, and what it is told of the sandbox."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final, TypedDict, cast

from msgspec import structs

from belljar.abi.limits import Limits
from belljar.api.async_link_host import AsyncLink
from belljar.api.errors import NotOnThisTier, SandboxClosed, SandboxCreationError
from belljar.api.link_host import Link
from belljar.api.results import Info
from belljar.api.settings import BASE, RestoreOptions, SandboxOptions, Settings
from belljar.api.state import State
from belljar.lockdown.layers import missing
from belljar.remote.client_host import Client, RemoteWorker
from belljar.remote.errors import DETACHED
from belljar.remote.wire import Create

_LEAVE_IT: Final = "of a server, which keeps it itself: detach() leaves it there, attach(id) goes on with it"
CHOSEN: Final = frozenset({"cwd", "user"})
"""Arguments that an image has values for."""
KEEP_SECONDS: Final = 300.0
"""Seconds that a sandbox goes on without a client."""


class AttachOptions(TypedDict, total=False):
    """The arguments of `RemoteSandbox.attach` beside the server and the id: what lives in the client."""

    mounts: Any
    tools: Any
    network: Any
    on_event: Any
    store: Any


class RemoteOptions(SandboxOptions, total=False):
    """The arguments of `RemoteSandbox` beside the server and its key."""

    keep_seconds: float
    """Seconds that it goes on after its client has detached: 300 unless told."""


class RemoteRestoreOptions(RestoreOptions, total=False):
    url: str | None
    key: str | None
    keep_seconds: float


def check_keep(options: Any) -> float:
    """Take `keep_seconds` out of the options. TypeError, ValueError."""
    seconds = options.pop("keep_seconds", None)
    if seconds is None:
        return KEEP_SECONDS
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise TypeError(f"keep_seconds= takes a number, not {type(seconds).__name__}")
    if not 0 <= seconds <= 1e9:
        raise ValueError(f"keep_seconds={seconds!r}: it must be positive")
    return float(seconds)


def check_options(options: SandboxOptions) -> tuple[Settings, State | None, str]:
    """Settings, the state that it begins with if its image is in a store here, and else the server's name of the image.

    An image of the client's is an `Image`, or a name with a `store`; any other name is the server's to know.
    """
    image = options.get("image")
    if options.get("native"):
        raise SandboxCreationError("native= is for a sandbox of this machine: a server has no programs of yours")
    if options.get("tier") == "native":
        raise SandboxCreationError("the tier of a remote sandbox is its server's: leave tier= out")
    if image is None or (isinstance(image, str) and (image == BASE or options.get("store") is None)):
        plain = cast("SandboxOptions", {name: value for name, value in options.items() if name != "image"})
        return Settings.check(plain), None, image or BASE
    from belljar.api.image import from_image

    return *from_image(options), BASE


def create_message(settings: Settings, image: str, timeout: float, given: frozenset[str]) -> Create:
    """`given`: which of "cwd" and "user" were told, and are not the image's to say."""
    usual, limits = asdict(Limits()), asdict(settings.limits)
    return Create(
        env=settings.env,
        cwd=settings.cwd if "cwd" in given else "",
        user=settings.user if "user" in given else "",
        hostname=settings.hostname,
        limits={name: value for name, value in limits.items() if value != usual[name]},
        require=sorted(settings.require),
        image=image,
        timeout=timeout,
        name=settings.name if settings.named else "",
    )


def attached_settings(client: Client, options: AttachOptions) -> Settings:
    """The settings of a sandbox that was made by another client. NotOnThisTier; then it is left as it is."""
    welcome = client.welcome
    given: dict[str, Any] = dict(options)
    given |= {"cwd": welcome.cwd, "limits": Limits(**cast("dict[str, Any]", welcome.limits))}
    settings = Settings.check(cast("SandboxOptions", given))
    try:
        check_placed(settings, client, None)
    except BaseException:
        client.abandon()
        raise
    return settings


def placed(settings: Settings, client: Client) -> Settings:
    """What the server says of a sandbox. One that was given no name is called what the server calls it."""
    name = settings.name if settings.named else client.id
    return structs.replace(settings, name=name, cwd=client.welcome.cwd, place=client.welcome.tier)


def check_placed(settings: Settings, client: Client, state: State | None) -> None:
    """Refuse what a native sandbox on a server can't have. NotOnThisTier."""
    tier = client.welcome.tier
    if tier == "virtual":
        return
    if state is not None:
        raise NotOnThisTier(
            "a snapshot or an image of your store", tier, "virtual", "of a server: its images are the server's own"
        )
    if settings.checkpoint is not None:
        raise NotOnThisTier("checkpoint=", tier, "virtual", _LEAVE_IT)
    if settings.network is not None and settings.network.decide is not None:
        raise NotOnThisTier(
            "network=",
            tier,
            "virtual",
            "of a server; sandboxes of its E2B API have the network that its operator gives",
        )


def check_branches(settings: Settings, call: str, *, closed: bool) -> None:
    """Refuse branches and snapshots of a native sandbox: its files are its server's. NotOnThisTier."""
    if settings.place != "virtual" and not closed:
        raise NotOnThisTier(call, settings.place, "virtual", _LEAVE_IT)


def serve_mounts(link: Link | AsyncLink, settings: Settings, client: Client) -> None:
    """Have trees of this program served that are mounted in a native sandbox."""
    if client.welcome.account:
        from belljar.api.native_mounts import NativeMounts
        from belljar.remote.mounts_host import RemoteMounts

        worker, conversation = link.worker, link.conversation
        assert isinstance(worker, RemoteWorker)
        worker.mounts = RemoteMounts(client)
        link.offers.native_mounts = NativeMounts(
            worker.mounts, settings.limits, settings.cwd, lambda: conversation.observe, link.clock
        )


def info(settings: Settings, client: Client, layers: list[str]) -> Info:
    welcome = client.welcome
    lacks = missing(layers, welcome.tier)
    return Info(settings.name, welcome.tier, tuple(layers), welcome.image, welcome.created, welcome.js, lacks)


def detached(client: Client) -> SandboxClosed:
    return SandboxClosed(DETACHED.format(client.id))
