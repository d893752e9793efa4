"""Mounts on the native tier: the trees that the virtual tier puts together in its worker are put together here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from belljar.abi.errors import Refused, SysError
from belljar.abi.limits import Limits
from belljar.abi.paths import fsencode
from belljar.api.clock_host import wall_time
from belljar.api.errors import SandboxError
from belljar.api.mounts import AGENT
from belljar.api.offers import Offers
from belljar.kernel.fs.memory import MemoryServer
from belljar.kernel.fs.overlay import OverlayServer
from belljar.kernel.fs.quota import Quota
from belljar.kernel.vfs.server import FileServer

if TYPE_CHECKING:
    from belljar.api.operations import Steps
    from belljar.native.mounts_host import OwnersMounts

_UNCHANGING: Final = frozenset({"archive", "stored"})
"""Kinds of servers that nobody changes."""


def _now() -> int:
    return int(wall_time() * 1e9)


class NativeMounts:
    """Builds servers from recipes, and has them served."""

    def __init__(
        self, served: OwnersMounts, limits: Limits, observe: Callable[[], Callable[[str, dict[str, Any]], None] | None]
    ) -> None:
        self._served = served
        self._quota = Quota(limits.file_bytes, limits.files)
        self._observe = observe

    def build(self, recipe: object, offers: Offers) -> tuple[FileServer, bool]:
        """The server of a recipe of `Mount.build`, and whether only the sandbox can change it. SandboxError."""
        match recipe:
            case [b"memory"]:
                return MemoryServer(_now, self._quota, owner=AGENT), True
            case [b"remote", int(number)] if (export := offers.exported(number)) is not None:
                return export.server, export.server.kind in _UNCHANGING
            case [b"overlay", lower, upper]:
                below, unchanging = self.build(lower, offers)
                above, private = self.build([b"memory"] if upper is None else upper, offers)
                try:
                    return OverlayServer(below, above, _now), unchanging and private
                except SysError as error:
                    raise SandboxError(f"can't make an overlay of these trees: {error}") from error
        raise SandboxError("this kind of mount is not on the native tier")

    def mount(self, path: str, recipe: object, read_only: bool, offers: Offers) -> Steps[None]:
        """The operation that mounts a recipe's tree at a path."""
        from belljar.api.operations import Work, ask, check_answer, mkdir

        server, private = yield Work(lambda: self.build(recipe, offers))
        yield from mkdir(path, True)
        value = yield from ask(path, "fuse", fsencode(path), server.root.mode, read_only)
        number = check_answer(value, int)

        def serve() -> None:
            try:
                self._served.serve(
                    number,
                    path,
                    server,
                    private=private,
                    read_only=read_only,
                    report=offers.report,
                    refused=self._refused,
                )
            except (OSError, ValueError) as error:
                raise SandboxError(f"can't mount at {path}: {error}") from error

        yield Work(serve)

    def unmount(self, path: str) -> Steps[None]:
        from belljar.api.operations import Work, ask

        yield from ask(path, "unmount", fsencode(path))
        yield Work(lambda: self._served.drop(path))

    def _refused(self, error: Refused) -> None:
        observe = self._observe()
        if observe is not None:
            observe("refused", {"path": error.host_path, "rule": error.rule, "why": error.why})
