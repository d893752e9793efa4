"""Owner-side resources used from inside: mounts served by the owner, and functions as commands."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import ValidationError, convert

from belljar.abi.container_state import ContainerState
from belljar.abi.errno import EIO
from belljar.abi.errors import SysError
from belljar.abi.paths import dirname, fsdecode, fsencode, normalise
from belljar.abi.records import Owner
from belljar.abi.wire import Answer, Ask, Plain, WireError, WorkerMessage
from belljar.kernel.container_state import contained_of
from belljar.kernel.containers import IMAGES_MAX, ContainerImage
from belljar.kernel.fiber import WaitQueue
from belljar.kernel.fs.memory import MemoryServer
from belljar.kernel.fs.overlay import OverlayServer
from belljar.kernel.fs.remote import Message, RemoteServer
from belljar.kernel.fs.remote_cache import Cache
from belljar.kernel.process import Process
from belljar.kernel.vfs.server import FileServer
from belljar.worker.base import make_directories
from belljar.worker.descriptor_host import Descriptor
from belljar.worker.session import Session
from belljar.worker.toolfs import PATH as TOOLS
from belljar.worker.toolfs import ToolServer

Answered = tuple[Answer, Sequence[Descriptor]]

ANSWER_SECONDS: Final = 2.0
"""Seconds to wait for answers about files before a fork."""


CACHE_BYTES: Final = 96 << 20
CACHE_ENTRIES: Final = 50_000
"""The most that is kept of mounts: contents of files, and entries of directories with their stats."""
ENTRY_BYTES: Final = 1500
"""Memory that an entry takes, about."""


class Hosted:
    """Questions to the owner: each waits for its answer in the fiber that asked."""

    def __init__(self, session: Session, send: Callable[[WorkerMessage], None]) -> None:
        self._session = session
        self._send = send
        self._next = 1
        self._waiting: dict[int, Answered | None] = {}
        self._unwanted: set[int] = set()
        """Questions whose answers are to be discarded."""
        self._answered = WaitQueue(session.kernel.hub)
        self._about_files: set[int] = set()
        """Questions about files that are not answered yet; most are at once."""
        self._acts: deque[Callable[[], None]] = deque()
        """Callbacks that wait for those answers; no further question about files is asked until they have run."""
        self._scheduled = False
        self._resumed = WaitQueue(session.kernel.hub)
        self.mounted: dict[str, tuple[FileServer, list[Any]]] = {}
        """The owner's mounts by path, with the recipes they were made by."""
        self._tools: ToolServer | None = None
        self._cache: Cache | None = None
        """Keeps what mounts answered; made for the first of them."""
        self._stored: Cache | None = None
        """The same, of trees that never change."""

    def when_quiet(self, act: Callable[[], None]) -> None:
        """Call `act` on the loop, between questions about files; soon in any case."""
        self._acts.append(act)
        self._schedule()
        self._session.kernel.hub.call_later(ANSWER_SECONDS, lambda: self._schedule(act))

    def _schedule(self, act: Callable[[], None] | None = None) -> None:
        due = act in self._acts if act is not None else self._acts and not self._about_files
        if due and not self._scheduled:
            self._scheduled = True
            self._session.kernel.hub.call_later(0, self._act)

    def _act(self) -> None:
        self._scheduled = False
        self._acts.popleft()()
        self._schedule()
        if not self._acts:
            self._resumed.wake_all()

    def renew(self) -> None:
        """Have mounts asked again: the owner said something, and may have changed files before that."""
        if self._cache is not None:
            self._cache.renew()

    @property
    def may_park(self) -> bool:
        """Whether paths lead to mounts of the owner's, so that only a fiber can follow them."""
        return self._cache is not None or self._stored is not None

    def lose_all(self) -> None:
        """Fail all pending questions, in a branch: their answers go to the origin."""
        for number, answered in self._waiting.items():
            if answered is None:
                self._waiting[number] = Answer(number, None, EIO), ()
        self._unwanted.clear()
        self._about_files.clear()
        self._answered.wake_all()

    def take(self, answer: Answer, descriptors: Sequence[Descriptor] = ()) -> None:
        self._about_files.discard(answer.id)
        self._schedule()
        if answer.id in self._unwanted:
            self._unwanted.remove(answer.id)
            return
        if self._waiting.get(answer.id, answer) is not None:
            raise WireError(f"an answer to nothing ({answer.id})")
        self._waiting[answer.id] = answer, descriptors
        self._answered.wake_all()

    def ask(self, target: bytes, operation: str, arguments: list[Plain]) -> Plain:
        """The owner's answer. Raises SysError if that is an errno."""
        answer, _ = self.question(target, operation, arguments)
        if answer.errno:
            raise SysError(answer.errno)
        return answer.value

    def question(self, target: bytes, operation: str, arguments: list[Plain]) -> Answered:
        """The owner's answer, whatever it is, and the descriptors that came with it."""
        while operation == "file" and self._acts:
            self._resumed.wait()
        number, self._next = self._next, self._next + 1
        self._waiting[number] = None
        if operation == "file":
            self._about_files.add(number)
        try:
            self._send(Ask(number, target, operation, arguments))
            while (answered := self._waiting[number]) is None:
                self._answered.wait()
        except BaseException:
            # The asker is being killed: the answer will come to nobody, and must not be an error then.
            if self._waiting.pop(number) is None:
                self._unwanted.add(number)
            raise
        del self._waiting[number]
        if operation != "file":
            self.renew()
        return answered

    def tell(self, target: bytes, operation: str, arguments: list[Plain]) -> None:
        """Send a question without waiting for the answer; order is kept."""
        number, self._next = self._next, self._next + 1
        self._unwanted.add(number)
        self._send(Ask(number, target, operation, arguments))

    # Mounts.

    def mount(self, path: bytes, recipe: list[Any], read_only: bool) -> Plain:
        """Build what a recipe says and cover `path`, made first if it is missing."""
        server = self._build(recipe)
        name = fsdecode(path)
        fs = self._session.kernel.init.fs
        self._make_point(name, directory=server.root.is_dir)
        self._session.kernel.register(server)
        fs.mount(server, name, read_only=read_only, source=server.kind)
        self.mounted[normalise(name)] = server, recipe
        return None

    def replace_root(self, recipe: list[Any], user: bytes) -> Plain:
        """Have another root, of a snapshot of a sandbox with this user."""
        over = lower_export(recipe)
        if over is None:
            raise WireError(f"no such root: {recipe!r}")
        self._session.replace_root(self._build(recipe), over, fsdecode(user))
        return None

    def unmount(self, path: bytes) -> Plain:
        name = fsdecode(path)
        self._session.kernel.init.fs.unmount(name)
        self.mounted.pop(normalise(name), None)
        return None

    def _build(self, recipe: list[Any]) -> FileServer:
        match recipe:
            case [b"memory"]:
                return self._memory()
            case [(b"remote" | b"stored") as kind, int(target)]:
                # A close is told at once: what was written must be complete there before the command's end is known.
                remote = RemoteServer(
                    lambda message: self._file(target, message),
                    lambda message: self.tell(b"%d" % target, "file", [dict(message)]),
                    self._shared_cache() if kind == b"remote" else self._stored_cache(),
                )
                remote.export = target
                return remote
            case [b"overlay", list(lower), upper]:
                clock = self._session.kernel.now
                return OverlayServer(self._build(lower), self._memory() if upper is None else self._build(upper), clock)
        raise WireError(f"no such mount: {recipe!r}")

    def _shared_cache(self) -> Cache:
        """The cache of all mounts, of a small part of the sandbox's memory."""
        if self._cache is None:
            self._cache = self._new_cache()
        return self._cache

    def _stored_cache(self) -> Cache:
        if self._stored is None:
            self._stored = self._new_cache(lasting=True)
        return self._stored

    def _new_cache(self, *, lasting: bool = False) -> Cache:
        share = self._session.kernel.memory_bytes // 16
        clock = self._session.kernel.hub.clock.monotonic
        return Cache(clock, min(share, CACHE_BYTES), min(share // ENTRY_BYTES, CACHE_ENTRIES), lasting=lasting)

    def _memory(self) -> MemoryServer:
        kernel, who = self._session.kernel, self._session.credentials
        return MemoryServer(kernel.now, kernel.quota, owner=Owner(who.uid, who.gid))

    def _file(self, target: int, message: Message) -> Message:
        reply = self.ask(b"%d" % target, "file", [dict(message)])
        if not isinstance(reply, dict):
            raise SysError(EIO)
        return reply

    def _make_point(self, path: str, *, directory: bool) -> None:
        fs = self._session.kernel.init.fs
        make_directories(fs, path if directory else dirname(path))
        if not directory:
            fs.open(path, 0o100).retain().release()

    # Containers and their images.

    def add_image(
        self,
        name: bytes,
        recipe: list[Any],
        env: list[list[bytes]],
        cwd: bytes,
        user: bytes,
        command: list[bytes],
        digest: str,
    ) -> Plain:
        """Let containers be made of a stored tree of the owner's, which they share."""
        images = self._session.images
        if len(images) >= IMAGES_MAX:
            raise WireError("too many images")
        image = ContainerImage(
            self._build(recipe),
            tuple((fsdecode(key), fsdecode(value)) for key, value in env),
            fsdecode(cwd),
            fsdecode(user),
            tuple(map(fsdecode, command)),
            digest,
        )
        images[fsdecode(name)] = lambda: image
        return None

    def add_container(self, state: list[Any], recipe: list[Any]) -> Plain:
        """Have a container of a snapshot, over a stored tree of the owner's; it does not run."""
        kernel = self._session.kernel
        root = self._build([b"overlay", recipe, None])
        assert isinstance(root, OverlayServer)
        try:
            known = convert(state, ContainerState, builtin_types=(bytes,))
        except ValidationError as error:
            raise WireError(f"no such container: {error}") from None
        self._session.containers.adopt(contained_of(known, root, kernel.now()))
        return None

    # Tools.

    def add_tool(self, name: bytes) -> Plain:
        """Make a host function a command on the PATH, and a file to call it by."""
        command = fsdecode(name)
        self._session.add_program(command, lambda process: self._run_tool(process, name))
        if self._tools is None:
            kernel = self._session.kernel
            self._tools = ToolServer(self._call_tool, kernel.now)
            self._make_point(TOOLS, directory=True)
            kernel.register(self._tools)
            kernel.init.fs.mount(self._tools, TOOLS, source=self._tools.kind)
        self._tools.add(command)
        return None

    def _call_tool(self, name: str, line: bytes) -> bytes:
        answer = self.ask(fsencode(name), "call", [line])
        if not isinstance(answer, bytes):
            raise SysError(EIO)
        return answer

    def _run_tool(self, process: Process, name: bytes) -> int:
        arguments = [fsencode(arg) for arg in process.argv[1:]]
        if arguments == [b"-"]:
            arguments = [process.read_file("-")]
        match self.ask(name, "tool", [arguments]):
            case [bytes(out), bytes(error), int(code)]:
                process.stdout.write(out)
                process.stdout.flush()
                if error:
                    process.write_all(2, error)
                return code
        raise SysError(EIO)


def lower_export(recipe: list[Any]) -> int | None:
    """The owner's export that an overlay with its changes in memory is over; -1: none; None: there is more to it."""
    match recipe:
        case [b"remote" | b"stored", int(target)]:
            return target
        case [b"overlay", list(lower), None]:
            return lower_export(lower)
        case [b"memory"]:
            return -1
    return None
