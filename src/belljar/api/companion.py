"""Native programs in a virtual sandbox: the argument `native=`, and how their companion is started."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct, structs

from belljar.abi.native import EVERY
from belljar.abi.paths import fsencode
from belljar.abi.wire import WireError
from belljar.api.image import from_image, is_stored, root_source
from belljar.api.settings import BASE, SandboxOptions, Settings
from belljar.lockdown.layers import ON_DEMAND
from belljar.native.roots import RootSource

if TYPE_CHECKING:
    from belljar.api.async_link_host import AsyncLink
    from belljar.api.link_host import Link
    from belljar.api.operations import Steps
    from belljar.api.state import State
    from belljar.native.companion_host import CompanionProcess


class NativeGrant(Struct, frozen=True):
    """The image whose programs may run natively, and which of them."""

    source: RootSource
    names: tuple[str, ...]
    every: bool


def with_companion(options: SandboxOptions) -> tuple[Settings, State | None]:
    """The settings of a virtual sandbox with native programs, and the state it begins from. ImageError, TypeError."""
    names = _check_names(options.get("native"))
    image = options.get("image")
    source = root_source(None if image == BASE else image, options.get("store"))
    rest = cast("SandboxOptions", {name: value for name, value in options.items() if name != "native"})
    settings: Settings
    state: State | None = None
    if image in (None, BASE) or not is_stored(image):
        rest.pop("image", None)
        settings = Settings.check(rest)
    else:
        settings, state = from_image(rest)
    grant = NativeGrant(source, tuple(name for name in names if name != EVERY), EVERY in names)
    return structs.replace(settings, grant=grant), state


def _check_names(names: object) -> list[str]:
    found = [names] if names == EVERY else names
    if isinstance(found, str | bytes) or not isinstance(found, Iterable):
        raise TypeError(f"native= takes '*' or names of programs, such as ['gcc', 'make'], not {names!r}")
    checked = list(found)
    for name in checked:
        if not isinstance(name, str) or not name or "/" in name or "\0" in name:
            raise ValueError(f"native={name!r} is no name of a program")
    return checked


def grant_programs(grant: NativeGrant) -> Steps[None]:
    """The operation that tells a new sandbox which programs run natively."""
    from belljar.api.operations import Work, ask
    from belljar.native.companion_host import list_programs

    places: list[str] = []
    if grant.every:
        places = yield Work(lambda: list_programs(grant.source))
    yield from ask("native", "native", [fsencode(n) for n in grant.names], [fsencode(p) for p in places], grant.every)


def start_for(link: Link | AsyncLink, settings: Settings, options: dict[str, Any]) -> CompanionProcess:
    """Start the companion of a sandbox, with the trees that its worker asks for and the sandbox's own way to the
    network. WorkerUnavailable, ImageError.
    """
    from belljar.native.companion_host import Tree, start_companion
    from belljar.native.launch_host import Request

    match options.get("trees"):
        case list(given) if len(given) <= 30:
            trees = [_tree(each, Tree) for each in given]
        case _:
            raise WireError("a companion needs trees")
    grant, access = settings.grant, link.offers.network
    assert grant is not None
    number = 0 if settings.user == "root" else 1000
    request = Request(
        source=grant.source,
        user=f"{number}:{number}",
        hostname=settings.hostname,
        cwd="/",
        limits=settings.limits,
        name=settings.name,
        network=None if access is None else settings.network,
        env={},
        needs_cgroup=not settings.require.isdisjoint(ON_DEMAND),
    )
    companion = start_companion(request, trees)
    try:
        if access is not None:
            companion.serve_network(access.gate(link.conversation.observe))
    except BaseException:
        companion.kill()
        raise
    return companion


def _tree(given: object, kind: Any) -> Any:
    match given:
        case [str(path), int(mode), bool(read_only)] if path[:1] == "/" and path.count("/") == 1 and len(path) > 1:
            return kind(path, mode, read_only)
    raise WireError(f"no tree of a companion: {given!r}")
