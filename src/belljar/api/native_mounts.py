"""Mounts on the native tier: the trees that the virtual tier puts together in its worker are put together here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from belljar.abi.errno import EACCES, ENODEV, ENOTSUP, EPERM
from belljar.abi.errors import Refused, SysError
from belljar.abi.limits import Limits
from belljar.abi.paths import basename, dirname, fsdecode, fsencode, join, normalise
from belljar.abi.wire import LIST_PAGE
from belljar.api.errors import FileError, SandboxError
from belljar.api.mounts import AGENT, Mount
from belljar.api.offers import Offers
from belljar.kernel.fs.memory import MemoryServer
from belljar.kernel.fs.overlay import OverlayServer
from belljar.kernel.fs.overlay_changes import OverlayChanges
from belljar.kernel.fs.quota import Quota
from belljar.kernel.fs.remote import RemoteServer
from belljar.kernel.fs.remote_cache import Cache
from belljar.kernel.vfs.server import FileServer

if TYPE_CHECKING:
    from belljar.abi.clock import Clock
    from belljar.api.operations import Steps
    from belljar.native.mounts_host import OwnersMounts

CACHE_BYTES: Final = 16 << 20
CACHE_ENTRIES: Final = 20_000
"""Of one mounted directory of the host. The kernel keeps contents, too."""
_UNCHANGING: Final = frozenset({"archive", "stored"})
"""Kinds of servers that nobody changes."""


_MEMORY: Final = ("/run", "/tmp", "/dev/shm")


class Built(NamedTuple):
    """A server made of a recipe. `private`: only the sandbox can change it."""

    server: FileServer
    private: bool = False
    caches: tuple[Cache, ...] = ()
    """Those of the directories of the host that it shows, if they are all that others can change."""

    def valid(self) -> float:
        """Seconds for which what it says may be kept."""
        return min(cache.remaining() for cache in self.caches)


class NativeMounts:
    """Builds servers from recipes, and has them served.

    Directories of the host are asked through the same cache as on the virtual tier, and the kernel keeps what it was
    told for as long as that does: until the owner says something, and half a second at most.
    """

    def __init__(
        self,
        served: OwnersMounts,
        limits: Limits,
        cwd: str,
        observe: Callable[[], Callable[[str, dict[str, Any]], None] | None],
        clock: Clock,
        *,
        durable: bool = False,
    ) -> None:
        """`durable`: the root outlives the sandbox, and no directory is made in it to mount on."""
        self._clock = clock
        self._durable = durable
        self._served = served
        self._cwd = cwd
        self._mounted: dict[str, list[Built]] = {}
        self.trees: list[tuple[str, Mount]] = []
        """What is mounted, in the order in which it was."""
        self._quota = Quota(limits.file_bytes, limits.files)
        self._observe = observe

    def _now(self) -> int:
        return int(self._clock.time() * 1e9)

    def renew(self) -> None:
        """The owner says something, and may have changed files before that: have them asked for again."""
        for pile in list(self._mounted.values()):
            for built in list(pile):
                for cache in built.caches:
                    cache.renew()
        self._served.new_epoch()

    def build(self, recipe: object, offers: Offers) -> Built:
        """The server of a recipe of `Mount.build`. SandboxError."""
        match recipe:
            case [b"memory"]:
                return Built(MemoryServer(self._now, self._quota, owner=AGENT), private=True)
            case [b"remote", int(number)] if (export := offers.exported(number)) is not None:
                if export.server.kind != "hostdir":
                    return Built(export.server, private=export.server.kind in _UNCHANGING)
                cache = Cache(self._clock.monotonic, CACHE_BYTES, CACHE_ENTRIES)
                served = RemoteServer(lambda message: export.serve(message, self._refused), cache=cache)
                return Built(served, caches=(cache,))
            case [b"overlay", lower, upper]:
                below = self.build(lower, offers)
                above = self.build([b"memory"] if upper is None else upper, offers)
                known = all(layer.private or layer.caches for layer in (below, above))
                try:
                    made = OverlayServer(below.server, above.server, self._now)
                    return Built(made, below.private and above.private, below.caches + above.caches if known else ())
                except SysError as error:
                    raise SandboxError(f"can't make an overlay of these trees: {error}") from error
        raise SandboxError("this kind of mount is not on the native tier")

    def mount(self, path: str, recipe: object, read_only: bool, offers: Offers) -> Steps[None]:
        """The operation that mounts a recipe's tree at a path."""
        from belljar.api.operations import Work, ask, check_answer, exists, mkdir

        built: Built = yield Work(lambda: self.build(recipe, offers))
        server = built.server
        if not self._durable or self._may_make(path):
            yield from mkdir(path, True)
        elif not (yield from exists(path)):
            raise SandboxError(
                f"can't mount at {path}: there is no such directory, and making it would change the root filesystem, "
                "which is kept. Make it there first, or mount below /run or /tmp"
            )
        try:
            value = yield from ask(path, "fuse", fsencode(path), server.root.mode, read_only)
        except FileError as error:
            if error.errno not in (ENODEV, EACCES, EPERM):
                raise
            raise SandboxError(
                f"can't mount at {path}: this sandbox can't use /dev/fuse ({error.strerror}). It takes the kernel's "
                "module fuse, and a /dev/fuse that your user may read and write (chmod 666, as most systems have it)"
            ) from None
        number = check_answer(value, int)

        def serve() -> None:
            try:
                self._served.serve(
                    number,
                    normalise(path),
                    server,
                    private=built.private,
                    valid=built.valid if built.caches else None,
                    read_only=read_only,
                    report=offers.report,
                    refused=self._refused,
                    charge=offers.share.charge,
                )
            except (OSError, ValueError) as error:
                raise SandboxError(f"can't mount at {path}: {error}") from error
            self._mounted.setdefault(normalise(path), []).append(built)

        yield Work(serve)

    def _may_make(self, path: str) -> bool:
        """Whether a directory there is in memory, or in a tree that is mounted."""
        place = normalise(path)
        return any(place.startswith(f"{above}/") for above in (*_MEMORY, *self._mounted))

    def unmount(self, path: str) -> Steps[None]:
        from belljar.api.operations import Work, ask

        yield from ask(path, "unmount", fsencode(path))
        place = self._place(path)
        if self._mounted.get(place):
            self._mounted[place].pop()
        last = next((entry for entry in reversed(self.trees) if self._place(entry[0]) == place), None)
        self.trees = [entry for entry in self.trees if entry is not last]
        yield Work(lambda: self._served.drop(place))

    def _place(self, path: str) -> str:
        return normalise(join(self._cwd, path))

    def ask_overlay(self, path: str, name: str, arguments: tuple[Any, ...]) -> Any:
        """What a worker would say of a directory of an overlay. SysError, ENOTSUP if it is none."""
        place, names = self._place(path), list[str]()
        while not self._mounted.get(place) and place != "/":
            names.insert(0, basename(place))
            place = dirname(place)
        if not self._mounted.get(place):
            raise SysError(ENOTSUP)
        server = self._mounted[place][-1].server
        with self._served.guard(server):
            node = server.root
            for each in names:
                node = server.walk(node, each)
            found = OverlayChanges(server, node)
            if name == "differences":
                return found.page(arguments[0], LIST_PAGE)
            return list(found.read_lower(fsdecode(arguments[0]), *arguments[1:]))

    def _refused(self, error: Refused) -> None:
        observe = self._observe()
        if observe is not None:
            observe("refused", {"path": error.host_path, "rule": error.rule, "why": error.why})
