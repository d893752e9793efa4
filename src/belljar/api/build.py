"""Building of images: each step in a fresh sandbox whose time and randomness are the same everywhere.

A step starts from the files that the steps before made, so its result depends on nothing else, and can be cached by
what it depends on (`image/recipe.py`). Steps that only write files need no sandbox.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import structs

from belljar.abi.base import AGENT_NAME, WORKSPACE
from belljar.abi.clock import Clock
from belljar.abi.errors import ImageError, SandboxError
from belljar.abi.limits import Limits
from belljar.abi.paths import fsdecode, fsencode
from belljar.abi.version import __version__
from belljar.api.clock_host import HOST_CLOCK
from belljar.api.errors import SnapshotError
from belljar.api.image import Progress, account_of, shell_file
from belljar.api.sandbox import Sandbox
from belljar.api.settings import UNITS, SandboxOptions, Settings
from belljar.api.state import Origin, State
from belljar.image.copy_host import copy_into
from belljar.image.recipe import (
    Command,
    Copy,
    Cwd,
    Debian,
    Env,
    Files,
    Run,
    Service,
    Step,
    User,
    history_line,
    step_key,
)
from belljar.image.record import (
    ImageConfig,
    ImageRecord,
    config_of,
    environment_of,
    make_image,
    read_image_record,
    with_config,
)
from belljar.image.tree import FileTree, Node, split_path
from belljar.kernel.machine import REPLAY_NS
from belljar.store.errors import StoreError
from belljar.store.objects import Digest, content_of
from belljar.store.snapshot import encode_snapshot, move_ref
from belljar.store.store import Objects
from belljar.store.tree import Kind

if TYPE_CHECKING:
    from belljar.net.network import Network

LIMITS: Final = Limits(wall_seconds=3600, cpu_seconds=3600, file_bytes=4 << 30)
"""What one step may use unless the caller says otherwise."""
_OUTPUT_SHOWN: Final = 4000
_PASSWD_MAX: Final = 1 << 20
_ENVIRONMENT: Final = {"SOURCE_DATE_EPOCH": str(REPLAY_NS // 10**9), "PYTHONHASHSEED": "0"}
"""Of every step: what other tools go by to make the same of the same."""
_NO_NETWORK: Final = "this sandbox was granted no network"
"""As programs in a sandbox say it."""
_NETWORK_ADVICE: Final = (
    "\nGive the build a network: build(network=Network.allow('HOST')), or `belljar image build --allow-host HOST`"
)
_BASE_STEP: Final = "base"

OnProgress = Callable[[Progress], object]


def build(
    objects: Objects,
    start: ImageRecord | None,
    steps: Sequence[Step],
    network: Network | None,
    on_progress: OnProgress | None,
    limits: Limits | None,
    tier: str | None = None,
    clock: Clock = HOST_CLOCK,
) -> tuple[ImageRecord, set[Digest]]:
    """Run the steps from an image on, or from the base files; and the cached steps it was made by. ImageError.

    Without a tier, commands run natively in a recipe that begins with a real system of its own making.
    """
    native = tier == "native" or (tier is None and bool(steps) and isinstance(steps[0], Debian))
    builder = _Builder(objects, network, limits or LIMITS, native=native)
    tell = on_progress or (lambda _: None)
    try:
        if start is None:
            start = builder.empty() if steps and isinstance(steps[0], Debian) else builder.base()
        record = start
        for number, step in enumerate(steps, 1):
            text = str(step)

            def say(
                state: str, output: bytes = b"", seconds: float = 0.0, *, at: int = number, what: str = text
            ) -> None:
                tell(Progress(at, len(steps), what, state, output, seconds))  # type: ignore[arg-type]

            say("started")
            began = clock.monotonic()
            try:
                made, cached = builder.step(record, step, lambda data: say("output", data))
            except ImageError as error:
                say("failed", seconds=clock.monotonic() - began)
                raise ImageError(f"step {number} of {len(steps)} failed: {text}: {error}") from error
            config = config_of(record)
            command = list(step.argv) if isinstance(step, Command) else config.command
            record = with_config(made, ImageConfig(command, [*config.history, history_line(step)]))
            say("cached" if cached else "done", seconds=clock.monotonic() - began)
    except (StoreError, SnapshotError) as error:
        raise ImageError(f"the image was not built: {error}") from error
    return record, builder.used


class _Builder:
    """Makes one image of another, for each kind of step."""

    def __init__(self, objects: Objects, network: Network | None, limits: Limits, *, native: bool) -> None:
        self._objects = objects
        self._native = native
        self._network = network
        self._limits = limits
        self.used: set[Digest] = set()

    def base(self) -> ImageRecord:
        """The image of the files that every sandbox begins with."""
        return self._cached(
            step_key(__version__, None, _BASE_STEP), lambda: self._run_in_sandbox(None, None, AGENT_NAME)
        )[0]

    def empty(self) -> ImageRecord:
        """An image without any file, for a step that makes all of them."""
        tree, directories = FileTree().save()
        self._objects.write(directories)
        return make_image(tree, 0, env={}, cwd="/", user="root")

    def step(self, record: ImageRecord, step: Step, hear: Callable[[bytes], object]) -> tuple[ImageRecord, bool]:
        """The image after a step, and whether it was there already."""
        match step:
            case Env(variables=variables):
                env = {**environment_of(record), **dict(variables)}
                encoded = sorted((fsencode(name), fsencode(value)) for name, value in env.items())
                return structs.replace(record, env=encoded), False
            case Command():
                return record, False
            case Files(files=files):
                return self._write_files(record, files), False
            case Copy(source=source, target=target):
                tree = FileTree.load(self._objects, record.trees[0])
                self._objects.write(copy_into(tree, source, target, self._owner(tree, record.user)))
                return self._save(record, tree), False
            case Service(name=name, text=text):
                return self._write_files(record, [(f"{UNITS}/{name}.toml", text.encode(), 0o644)], "root"), False
            case Cwd(path=path):
                tree = FileTree.load(self._objects, record.trees[0])
                tree.way(split_path(fsencode(path.lstrip("/"))), make=self._owner(tree, record.user))
                made = self._save(record, tree)
                return structs.replace(made, cwd=b"/" + b"/".join(split_path(fsencode(path.lstrip("/"))))), False
            case User(name=name) if name == record.user or name == "root" or self._native:
                return structs.replace(record, user=name), False
            case User(name=name):
                key = step_key(__version__, record, step)
                return self._cached(key, lambda: self._run_in_sandbox(record, None, name))
            case Debian():
                return self._install_debian(step, hear)
            case Run():
                key = step_key(__version__, record, step, network=self._network is not None, native=self._native)
                if self._native:
                    return self._cached(key, lambda: self._run_natively(record, step, hear))
                seed = bytes.fromhex(key.rpartition("/")[2])
                return self._cached(key, lambda: self._run_in_sandbox(record, step, None, seed, hear))

    def _install_debian(self, step: Debian, hear: Callable[[bytes], object]) -> tuple[ImageRecord, bool]:
        from belljar.api.build_native import install_debian
        from belljar.image.debian.fetch_host import host_architecture

        known = structs.replace(step, architecture=step.architecture or host_architecture())
        return self._cached(
            step_key(__version__, None, known), lambda: install_debian(known, self._objects, self._limits, hear)
        )

    def _cached(self, key: str, make: Callable[[], ImageRecord]) -> tuple[ImageRecord, bool]:
        """What a step made earlier, or makes now. A result that has gone is made again."""
        store = self._objects.backend
        found = store.get(key)
        if found is not None and not store.missing([found]):
            self.used.add(found)
            return read_image_record(self._objects, found), True
        made = with_config(make(), ImageConfig())
        (digest,) = self._objects.write([encode_snapshot(made, "image")])
        move_ref(store, key, digest)
        self.used.add(digest)
        return made, False

    def _run_natively(self, record: ImageRecord, step: Run, hear: Callable[[bytes], object]) -> ImageRecord:
        from belljar.api.build_native import run_native

        if account_of(record) != "root":
            raise ImageError("steps of the native tier run as root: put .user() behind them")
        return run_native(self._objects, record, step.command, _ENVIRONMENT, self._limits, hear, network=self._network)

    def _run_in_sandbox(
        self,
        record: ImageRecord | None,
        step: Run | None,
        user: str | None,
        seed: bytes = b"base",
        hear: Callable[[bytes], object] | None = None,
    ) -> ImageRecord:
        """Run a command in a fresh sandbox from an image; gives the image of what is there then.

        Without a `user`, it is the image's own.
        """
        if sys.platform != "linux":
            raise ImageError("commands of a recipe can be run on Linux only")
        state = State(None if record is None else self._origin(record))
        env = {} if record is None else environment_of(record)
        options: SandboxOptions = {
            "env": {**_ENVIRONMENT, **env},
            "cwd": WORKSPACE if record is None else fsdecode(record.cwd),
            "user": user or ("root" if record is None else account_of(record)),
            "limits": self._limits,
            "files": {} if record is None else shell_file(self._objects, record),
        }
        if self._network is not None:
            options["network"] = self._network
        try:
            settings = structs.replace(Settings.check(options), seed=seed, passive=True)
            sandbox = Sandbox.__new__(Sandbox)
            sandbox._begin(settings, state)
            with sandbox:
                if step is not None:
                    command = step.command if isinstance(step.command, str) else list(step.command)
                    result = sandbox.exec(command, merge_stderr=True, on_stdout=hear)
                    if not result.ok:
                        raise ImageError(explain(result.exit_code, result.limit, result.stdout))
                captured = sandbox._run(state.capture(self._objects, sandbox._link.offers, settings.limits))
                self._objects.write(captured.new)
        except (SandboxError, ValueError) as error:
            if isinstance(error, ImageError):
                raise
            raise ImageError(str(error)) from error
        tree, size = captured.trees[0], captured.growth + (0 if record is None else record.size)
        if tree.hard_links:  # numbered as they came to be: as they are met, no history shows
            files = FileTree.load(self._objects, tree)
            (tree, directories), size = files.save(), files.size
            self._objects.write(directories)
        if record is None:
            return make_image(tree, size, env={}, cwd=WORKSPACE, user=AGENT_NAME)
        return structs.replace(record, trees=[tree], size=max(0, size), user=user or record.user)

    def _origin(self, record: ImageRecord) -> Origin:
        plain = with_config(structs.replace(record, user=account_of(record)), ImageConfig())
        (digest,) = self._objects.write([encode_snapshot(plain, "image")])
        return Origin(self._objects, digest, plain)

    def _write_files(
        self, record: ImageRecord, files: Sequence[tuple[str, bytes, int]], user: str | None = None
    ) -> ImageRecord:
        tree = FileTree.load(self._objects, record.trees[0])
        like = self._owner(tree, user or record.user)
        contents: list[bytes] = []
        for path, data, mode in files:
            node = Node(Kind.FILE, mode)
            contents += node.fill([data])
            tree.put(split_path(fsencode(path.lstrip("/"))), node, like)
        self._objects.write(contents)
        return self._save(record, tree)

    def _save(self, record: ImageRecord, tree: FileTree) -> ImageRecord:
        stored, directories = tree.save()
        self._objects.write(directories)
        return structs.replace(record, trees=[stored], size=tree.size)

    def _owner(self, tree: FileTree, user: str) -> Node:
        """A directory of the user's, as new ones are to be."""
        name = user.partition(":")[0]
        uid, gid = (0, 0) if name in ("", "0", "root") else self._account(tree, name)
        return Node(Kind.DIRECTORY, 0o755, uid, gid, REPLAY_NS)

    def _account(self, tree: FileTree, user: str) -> tuple[int, int]:
        """The ids of a user, as the image's /etc/passwd has them."""
        node = tree.find([b"etc", b"passwd"])
        if node is not None and node.kind is Kind.FILE and node.size <= _PASSWD_MAX and all(node.parts):
            for line in content_of(self._objects.read(node.parts)).decode("utf-8", "replace").splitlines():
                name, *fields = line.split(":")
                if name == user and len(fields) > 2 and fields[1].isdecimal() and fields[2].isdecimal():
                    return int(fields[1]) & 0xFFFFFFFF, int(fields[2]) & 0xFFFFFFFF
        return 1000, 1000


def explain(code: int, limit: str | None, output: str) -> str:
    shown = output if len(output) <= _OUTPUT_SHOWN else "...\n" + output[-_OUTPUT_SHOWN:]
    why = f"exit code {code}" if limit is None else f"it reached the limit {limit}"
    text = f"{why}\n{shown.rstrip()}" if shown.strip() else why
    return text + _NETWORK_ADVICE if _NO_NETWORK in output else text
