"""Settings of a sandbox: the constructor's arguments, checked once for both fronts."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypedDict, cast

from msgspec import Struct, structs

from belljar.abi.base import TAKEN_NAMES, WORKSPACE
from belljar.abi.limits import OVERHEAD, Limits
from belljar.abi.wire import Boot
from belljar.api.clock_host import HOST_CLOCK, new_id
from belljar.api.command import StartOptions
from belljar.api.errors import IsolationUnavailable, NotOnThisTier, SandboxCreationError
from belljar.api.mounts import Mount, check_mount
from belljar.api.mounts_host import find_node_modules
from belljar.api.request import AnyPath, FileContents, boot_message, check_contents, check_environment, check_path
from belljar.api.results import Info
from belljar.lockdown.layers import ON_DEMAND, missing
from belljar.owner.handle_host import CgroupUnavailable, WorkerHandle

if TYPE_CHECKING:
    from belljar.abi.clock import Clock
    from belljar.api.async_link_host import AsyncLink
    from belljar.api.companion import NativeGrant
    from belljar.api.dialogue import Engine
    from belljar.api.events import Event, OnEvent
    from belljar.api.image import Image
    from belljar.api.link_host import Link
    from belljar.api.microvm import MachineStart
    from belljar.api.native import NativeStart
    from belljar.api.rootfs import Rootfs
    from belljar.api.tools import Tool
    from belljar.net.network import Network
    from belljar.store.store import Store

_USER: Final = re.compile(r"[a-z_][a-z0-9_-]{0,31}")
_HOSTNAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,63})")
NODE_MODULES: Final = "/node_modules"
"""Where `require` and `import` look last, from every directory."""
_TIERS: Final = ("virtual", "native", "microvm")
UNITS: Final = "/etc/init"
"""The directory with the descriptions of services."""
BASE: Final = "base"
"""The name of the image that every sandbox without another one has."""
_KINDS: Final[dict[str, type]] = {
    "tier": str,
    "files": Mapping,
    "mounts": Mapping,
    "user": str,
    "hostname": str,
    "limits": Limits,
    "tools": Mapping,
    "name": str,
    "on_event": Callable,  # type: ignore[dict-item]
}
_NAMED: Final = {Mapping: "a dict", Callable: "a function", str: "a str", Limits: "Limits(...)"}


MACHINE_OPTIONS: Final = ("rootfs", "cpus", "memory_mib", "accel")


class MachineOptions(TypedDict, total=False):
    """Arguments that only tier="microvm" takes."""

    rootfs: Rootfs | None
    """Its root filesystem: the built-in system, unless told, with changes in the machine's memory."""
    cpus: int
    memory_mib: int
    accel: str
    """"kvm", "tcg" (emulation), or "auto": KVM where a machine boots with it."""


class RestoreOptions(MachineOptions, total=False):
    """The arguments of `Sandbox.restore` beside the snapshot and its store."""

    tier: str
    """"virtual" (the default); "native": real programs of an image, in namespaces of this machine's kernel; "microvm":
    real programs on a kernel of their own, in a virtual machine."""
    image: Image | str | None
    """The files and settings it begins with: an `Image` that was built, its name or its digest. A snapshot has its own;
    one of the virtual tier that goes on natively takes the programs of an image."""
    files: Mapping[str, FileContents]
    """Initial files: str, bytes or (bytes, mode)."""
    mounts: Mapping[str, Mount]
    env: Mapping[str, str]
    cwd: str
    user: str
    """Who commands run as: "agent" unless told; "root" may do anything inside."""
    hostname: str
    limits: Limits
    tools: Mapping[str, Callable[..., Any]]
    """Host functions, as commands on the PATH."""
    network: Network | None
    """Network that it may reach: `Network.deny()` (the default), `Network.allow(...)` or `Network.policy(fn)`."""
    require: set[str] | None
    """Isolation layers that must hold (see `belljar doctor`), else IsolationUnavailable."""
    name: str | None
    node_modules: AnyPath | None
    """A directory with a `node_modules` on this machine: every `node` finds what is installed there, read-only."""
    on_event: Callable[[Event], object] | None
    """Told of commands, file changes, limits and network use as they happen."""
    checkpoint: Literal["exec"] | float | None
    """When it is kept under its name without being asked: after each `exec`, or every so many seconds."""


class SandboxOptions(RestoreOptions, total=False):
    """The arguments of `Sandbox` and `AsyncSandbox`."""

    store: Store | None
    """Where its snapshots are kept, and its image is looked up: the user's own store unless told."""
    native: Iterable[str]
    """Programs of the image that run natively, on the files of this virtual sandbox: their names, or "*" for all,
    and for programs that are built inside. Without an image they are this machine's own."""


class Settings(Struct, frozen=True):
    limits: Limits
    env: dict[str, str]
    cwd: str
    hostname: str
    files: tuple[tuple[str, bytes, int | None], ...]
    mounts: tuple[tuple[str, Mount], ...]
    tools: tuple[Tool, ...]
    network: Network | None
    """None: no network, and nobody who wants to know what was refused."""
    require: frozenset[str]
    name: str
    user: str
    on_event: OnEvent | None
    created: float
    named: bool = False
    """Whether the name was given."""
    store: Store | None = None
    checkpoint: Literal["exec"] | float | None = None
    image: str = BASE
    native: NativeStart | None = None
    """How to start it, if its tier is "native"."""
    machine: MachineStart | None = None
    """The same, if its tier is "microvm"."""
    place: str = ""
    """The tier of a sandbox on a server, which has started it."""
    grant: NativeGrant | None = None
    """The programs that run natively in a virtual sandbox."""
    seed: bytes = b""
    """Of a sandbox that builds an image: see `Boot`."""
    passive: bool = False
    """Whether its services are not started: it is the template of others, or builds an image."""
    clock: Clock = HOST_CLOCK

    @classmethod
    def check(cls, options: SandboxOptions, clock: Clock = HOST_CLOCK) -> Self:
        """TypeError, ValueError or SandboxCreationError, saying what is wrong."""
        unknown = set(options) - set(SandboxOptions.__annotations__)
        if unknown:
            raise TypeError("; ".join(map(_explain_unknown, sorted(unknown))))
        options = cast("SandboxOptions", {name: value for name, value in options.items() if value is not None})
        for name, kind in _KINDS.items():
            if name in options and not isinstance(options[name], kind):  # type: ignore[literal-required]
                given = type(options[name]).__name__  # type: ignore[literal-required]
                raise TypeError(f"{name}= takes {_NAMED[kind]}, not {given}")
        tier, user = options.get("tier", "virtual"), options.get("user", "agent")
        if tier not in _TIERS:
            raise ValueError(f"there is no tier {tier!r}: choose from {', '.join(_TIERS)}")
        if found := [f"{name}=" for name in MACHINE_OPTIONS if name in options]:
            raise TypeError(f"{', '.join(found)}: give tier='microvm', too: only machines have that")
        if tier in ("native", "microvm"):  # a new one is checked without its tier
            raise NotOnThisTier("going on from a snapshot", tier, "virtual")
        if options.get("image", BASE) != BASE:
            raise TypeError("image= is for a new sandbox: one that goes on from a snapshot has that one's files")
        if options.get("native"):
            raise TypeError("native= is for a new sandbox of the virtual tier")
        if not _USER.fullmatch(user):
            raise ValueError(f"user {user!r} is no user name: use lower-case letters, digits, - and _ (at most 32)")
        if user in TAKEN_NAMES:
            raise ValueError(f"the user name {user!r} is taken inside the sandbox; choose another")
        cwd = check_path(options.get("cwd", WORKSPACE), "cwd=")
        if not cwd.startswith("/"):
            raise ValueError(f"cwd={cwd!r}: it must be an absolute path in the sandbox")
        hostname = options.get("hostname", "belljar")
        if not _HOSTNAME.fullmatch(hostname):
            raise ValueError(f"hostname {hostname!r} is no host name: use letters, digits, - and . (at most 64)")
        trees = dict(options.get("mounts", {}))
        if "node_modules" in options:
            if NODE_MODULES in trees:
                raise ValueError(f"node_modules= is mounted at {NODE_MODULES}, where mounts= has another tree")
            project = check_path(options["node_modules"], "node_modules=")
            trees[NODE_MODULES] = Mount.host(find_node_modules(project))
        mounts = tuple((check_mount(path, mount), mount) for path, mount in trees.items())
        return cls(
            limits=options.get("limits", Limits()),
            env=check_environment(options.get("env")),
            cwd=cwd,
            hostname=hostname,
            files=tuple(
                (check_path(path), *check_contents(path, value)) for path, value in options.get("files", {}).items()
            ),
            mounts=mounts,
            tools=_tools(options.get("tools", {})),
            network=_check_network(options.get("network"), recorded=options.get("on_event") is not None),
            require=_check_require(options.get("require")),
            name=options.get("name") or new_id(),
            named=bool(options.get("name")),
            user=user,
            on_event=options.get("on_event"),
            created=clock.time(),
            clock=clock,
            store=check_store(options.get("store")),
            checkpoint=_check_checkpoint(options.get("checkpoint")),
        )

    def branch(self) -> Self:
        """Those of a branch: the same, under a name of its own."""
        return structs.replace(self, name=new_id(), created=self.clock.time(), named=False, checkpoint=None)

    def plain(self) -> Self:
        """Those of a template for sandboxes like this one: without what a sandbox gets after it was booted."""
        return structs.replace(
            self.branch(), files=(), mounts=(), tools=(), network=None, on_event=None, grant=None, passive=True
        )

    def boot_key(self) -> tuple[object, ...]:
        """What a worker was booted with: equal for sandboxes that can have one template."""
        return tuple(sorted(self.env.items())), self.cwd, self.user, self.hostname, self.limits

    def may_have_services(self, *, stored: bool) -> bool:
        """Whether there may be services to start: it has files of an image or a snapshot, or descriptions of them."""
        if self.runs_programs or self.passive:
            return False
        near = [path for path, _, _ in self.files] + [path for path, _ in self.mounts]
        return stored or any(path.startswith(UNITS) or UNITS.startswith(path.rstrip("/") + "/") for path in near)

    @property
    def tier(self) -> str:
        if self.place:
            return self.place
        return "microvm" if self.machine is not None else "virtual" if self.native is None else "native"

    @property
    def runs_programs(self) -> bool:
        """Whether commands are real programs, started by the agent."""
        return self.tier != "virtual"

    def report(self, kind: str, details: dict[str, Any]) -> None:
        """Tell the owner of something that happened to its storage."""
        if self.on_event is not None:
            from belljar.api.events import Event

            self.on_event(Event(kind, self.clock.time(), self.name, details))

    def python(self) -> Engine:
        """The kind of interpreter that `sandbox.python` is."""
        from belljar.api.dialogue import PYTHON  # most sandboxes have none

        if not self.runs_programs:
            return PYTHON
        from belljar.api.native import native_python

        return native_python()

    def check_possible(self, call: str) -> None:
        """Refuse a call that only the virtual tier has. NotOnThisTier."""
        if self.runs_programs:
            raise NotOnThisTier(call, self.tier, "virtual")

    def boot(self, env: Mapping[str, str] | None = None) -> Boot:
        """The first message; `env`: the whole environment of commands, where the worker has none of its own."""
        return boot_message(dict(env or self.env), self.cwd, self.user, self.hostname, self.limits, self.seed)

    def functions(self) -> dict[str, Callable[..., Any]]:
        """The tools, as an interpreter names them."""
        named = {tool.name.replace("-", "_"): tool.checked for tool in self.tools}
        return {name: function for name, function in named.items() if name.isidentifier()}

    def info(self, layers: list[str]) -> Info:
        lacks = missing(layers, self.tier)
        return Info(self.name, self.tier, tuple(layers), self.image, self.created, _describe_js(), lacks)

    def offer_companion(self, link: Link | AsyncLink) -> None:
        """Have the sandbox's companion started when its worker asks for it, if it may run native programs."""
        if self.grant is not None:
            from belljar.api.companion import start_for

            link.engines.start_companion = lambda options: start_for(link, self, options)

    def confine(self, worker: WorkerHandle) -> None:
        """The layers that are only put up when they are required. IsolationUnavailable."""
        if not self.runs_programs and not self.require.isdisjoint(ON_DEMAND):
            try:
                worker.confine(self.limits.memory_bytes + OVERHEAD)
            except CgroupUnavailable as error:
                worker.kill()
                raise IsolationUnavailable(set(self.require & ON_DEMAND), []) from error

    def check_layers(self, held: list[str]) -> None:
        if missing := self.require - set(held):
            raise IsolationUnavailable(set(missing), held)


def _explain_unknown(name: str) -> str:
    from difflib import get_close_matches  # only now: most programs never need it

    if name in StartOptions.__annotations__:
        hint = f": give it to exec({name}=...)"
    else:
        close = get_close_matches(name, SandboxOptions.__annotations__, 1)
        hint = f": did you mean {close[0]}=?" if close else ""
    return f"Sandbox() got an unexpected argument: {name}{hint}"


def _describe_js() -> str:
    if sys.platform != "linux":
        return "none (it needs Linux)"
    from belljar.engines.owner.js_choice_host import describe  # who does not ask need not wait for it

    return describe()


def _check_network(network: object, *, recorded: bool) -> Network | None:
    if network is None and not recorded:
        return None
    from belljar.net.network import Network

    if network is None:
        network = Network.deny()
    if not isinstance(network, Network):
        raise TypeError(f"network= takes Network.deny(), Network.allow(...) or Network.policy(fn), not {network!r}")
    if network.decide is not None and sys.platform != "linux":
        raise SandboxCreationError("a network can be granted on Linux only; leave network= out")
    return network if recorded or network.decide is not None or network.audit is not None else None


def check_store(store: object) -> Store | None:
    """TypeError for what is no store."""
    if store is None:
        return None
    from belljar.store.store import Store  # most sandboxes have none

    if not isinstance(store, Store):
        raise TypeError(f"store= takes Store.sqlite(path), Store.fsspec(url) or Store.memory(), not {store!r}")
    return store


def _check_checkpoint(when: object) -> Literal["exec"] | float | None:
    if when is None or when == "exec":
        return when
    if isinstance(when, bool) or not isinstance(when, int | float):
        raise TypeError(f"checkpoint= takes 'exec' or a number of seconds, not {when!r}")
    if not when > 0:
        raise ValueError(f"checkpoint={when!r}: the seconds must be positive")
    return float(when)


def _check_require(names: object) -> frozenset[str]:
    if not isinstance(names, Iterable | None) or isinstance(names, str | bytes):
        raise TypeError(f"require= takes a set of layers' names, such as {{'seccomp', 'landlock'}}, not {names!r}")
    return frozenset(map(str, names or ()))


def _tools(functions: Mapping[str, Callable[..., Any]]) -> tuple[Tool, ...]:
    if not functions:
        return ()
    from belljar.api.tools import Tool

    return tuple(Tool(name, function) for name, function in functions.items())
