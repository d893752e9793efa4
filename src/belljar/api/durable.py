"""A sandbox's snapshots and checkpoints, for both fronts: operations whose waits are the front's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from belljar.api import state as states
from belljar.api.errors import SandboxError, SnapshotError
from belljar.api.interpreter_core import Lock
from belljar.api.operations import Steps, Work, run_operation, set_up
from belljar.api.request import check_environment
from belljar.api.saved import MAX_BYTES, Language, SavedVariables
from belljar.api.settings import BASE, RestoreOptions, Settings, check_store
from belljar.api.snapshot import Snapshot
from belljar.api.state import Origin, Point, State, tier_of
from belljar.api.stepper import Waits
from belljar.image.record import environment_of
from belljar.store.default_host import default_store
from belljar.store.errors import RefConflict, StoreError
from belljar.store.snapshot import SANDBOX, SHA256, check_label
from belljar.store.store import Objects

if TYPE_CHECKING:
    from belljar.api.interpreter_core import InterpreterCore
    from belljar.api.js_core import JsCore
    from belljar.store.objects import Digest
    from belljar.store.store import Store

    Cores = Mapping[Language, InterpreterCore | JsCore]

_VARIABLES_LOST_MAX: Final = 20


class Durable:
    """What is kept of one sandbox. `lock` is held while a snapshot is made."""

    def __init__(
        self,
        settings: Settings,
        state: State,
        lock: Lock,
        link: Callable[[], Any],
        execute: Callable[[list[str]], Any],
        cores: Callable[[], Cores],
    ) -> None:
        self._settings = settings
        self.state = state
        self._lock = lock
        self._link = link
        self._execute = execute
        self._cores = cores

    @property
    def lock(self) -> Any:
        """Held while a snapshot is made."""
        return self._lock

    def set_up(self) -> Steps[None]:
        """Make a fresh sandbox the one that was asked for: of a snapshot, or from the base files."""
        state, settings, offers = self.state, self._settings, self._link().offers
        if state.origin is not None and settings.runs_programs and state.origin.record.containers:
            states.tell_dropped(state.origin, settings.tier, self._link().conversation.observe)
        if settings.checkpoint is not None and state.checkpoints == {None}:
            yield Work(lambda: check_unused(self._store(None), settings.name))
        if state.origin is not None and settings.machine is not None:
            from belljar.api.machine_state import lay_files

            yield from lay_files(state.origin, settings, self._link().worker)
        elif state.origin is not None and settings.native is None:
            settings = yield from states.restore_trees(state.origin, state, settings, offers)
        yield from set_up(settings, offers)

    def load_variables(self) -> None:
        """Give the interpreters what they begin with. SnapshotError."""
        origin = self.state.origin
        if origin is not None and origin.record.variables:
            cores = self._cores()
            for language, data in states.read_variables(origin).items():
                cores[language].first = SavedVariables.unseal(data)

    def snapshot(self, label: str | None, store: Store | None) -> Waits[Point]:
        """Raises SnapshotError, and then there is none."""
        if label is not None:
            if not isinstance(label, str):
                raise TypeError(f"snapshot(label) takes a str, not {type(label).__name__}")
            check_label(label)
        return (yield from self._locked(self._take(self._store(store), label or "", keep=True)))

    def checkpoint(self) -> Waits[Point]:
        """Keep the sandbox as it is now under its name. SnapshotError if another one goes on under that name."""
        return (yield from self._locked(self._checkpoint(keep=False)))

    def pause(self) -> Waits[str]:
        """Keep it under its name, if it was given one, and as a snapshot; gives the ref."""
        if self._settings.named or self._settings.checkpoint is not None:
            point = yield from self._locked(self._checkpoint(keep=True))
        else:
            point = yield from self._locked(self._take(self._store(None), "", keep=True))
        return point.ref

    def _checkpoint(self, *, keep: bool) -> Waits[Point]:
        store = self._store(None)
        point: Point = yield from self._take(store, "", keep=keep)
        name, state = self._settings.name, self.state
        ours = state.checkpoints
        if ours != {point.digest}:
            state.checkpoints = ours | {point.digest}  # if it is cancelled, the name may be moved yet
            yield self._link().call_blocking(lambda: _move(store, name, point.digest, ours), lambda _: None)
            state.checkpoints = frozenset({point.digest})
        return point

    def _locked(self, waits: Waits[Point]) -> Waits[Point]:
        yield self._lock.acquire()
        try:
            return (yield from waits)
        finally:
            self._lock.release()

    def branch(self) -> Waits[Point]:
        """A snapshot in memory, for branches of a sandbox that can't be forked live."""
        from belljar.store.memory_host import MemoryStore

        state = State()
        self._set_reader(state)
        return (yield from self._locked(self._take(MemoryStore(), "", keep=False, state=state)))

    def _set_reader(self, state: State) -> None:
        size = 0 if state.origin is None else state.origin.record.size
        if self._settings.native is not None:
            from belljar.api.native_state import capture_with

            state.read = capture_with(self._settings, self._link().worker, size)
        elif self._settings.machine is not None:
            from belljar.api import machine_state

            state.read = machine_state.capture_with(self._settings, self._link().worker, size)

    def _take(self, store: Store, label: str, *, keep: bool, state: State | None = None) -> Waits[Point]:
        variables, lost = yield from self._save_variables()
        link = self._link()
        self._set_reader(self.state)
        steps = states.take(state or self.state, self._settings, link.offers, store, label, variables, lost, keep=keep)
        try:
            return (yield from run_operation(link, steps, self._execute))
        except BaseException as error:
            if not isinstance(error, Exception):  # cancelled: the worker need not keep what it captured
                with suppress(SandboxError):
                    link.send(link.conversation.call("capture_end", 0)[1])
            raise

    def _save_variables(self) -> Waits[tuple[dict[Language, bytes], list[str]]]:
        """The sealed variables of the interpreters that have some, and which could not be kept."""
        found: dict[Language, bytes] = {}
        lost: list[str] = []
        for language, core in self._cores().items():
            if not core.started:
                continue
            if core.lock.locked():
                lost.append(f"the variables of {language}: a run was under way")
                continue
            try:
                saved: SavedVariables = yield from core.save(MAX_BYTES, ())
            except SnapshotError as error:
                lost.append(f"the variables of {language}: {error}")
                continue
            found[language] = saved.seal()
            lost += [f"the {language} variable {name}: {why}" for name, why in saved.left_out.items()][
                :_VARIABLES_LOST_MAX
            ]
        return found, lost

    def _store(self, given: Store | None) -> Store:
        return find_store(given if given is not None else self._settings.store)


def find_store(given: Store | None) -> Store:
    """The store that was given, or the user's own. TypeError."""
    return check_store(given) or default_store()


def check_unused(store: Store, name: str) -> None:
    """SnapshotError if a sandbox of this name was kept already."""
    try:
        taken = store.get(SANDBOX + name) is not None
    except StoreError as error:
        raise SnapshotError(f"the store can't be used: {error}") from error
    if taken:
        raise SnapshotError(
            f"there is a checkpoint of a sandbox {name!r} already: go on with it by resume({name!r}), "
            "or choose another name"
        )


def _move(store: Store, name: str, digest: Digest, ours: frozenset[Digest | None]) -> None:
    """Have a name stand for a checkpoint, if it now stands for one of ours."""
    try:
        while (before := store.get(SANDBOX + name)) in ours:
            with suppress(RefConflict):
                return store.set(SANDBOX + name, digest, before)
        raise SnapshotError(
            f"the sandbox {name!r} was not kept: another one goes on under that name, and nothing of it was changed"
        )
    except StoreError as error:
        raise SnapshotError(f"the sandbox {name!r} was not kept: {error}") from error


def find_origin(snapshot: object, store: Store | None, *, by_name: bool = False) -> tuple[Origin, Digest | None]:
    """The snapshot that is meant; and with `by_name`, if it is a sandbox's name, its checkpoint. SnapshotError."""
    if isinstance(snapshot, Snapshot):
        return Origin(Objects(snapshot.store), snapshot.digest, snapshot.record), None
    if not isinstance(snapshot, str):
        raise TypeError(f"a label, a ref or a Snapshot is needed, not {type(snapshot).__name__}")
    place = find_store(store)
    checkpoint = None
    try:
        checkpoint = place.get(SANDBOX + snapshot) if by_name else None
        text = snapshot if checkpoint is None else f"sha256:{checkpoint.hex()}"
        return Origin.find(place, text), checkpoint
    except SnapshotError as error:
        if by_name and checkpoint is None and not snapshot.startswith(SHA256):
            raise SnapshotError(f"no sandbox called {snapshot[:200]!r} was kept, and {error}") from None
        raise
    except StoreError as error:
        raise SnapshotError(f"the snapshot {snapshot[:200]!r} can't be read: {error}") from error


def restored(
    snapshot: object, store: Store | None, options: RestoreOptions, *, by_name: bool = False
) -> tuple[Settings, State]:
    """What a sandbox that goes on from a snapshot starts with: the snapshot's settings unless they are given anew. It
    is of the same tier unless told.
    """
    origin, checkpoint = find_origin(snapshot, store, by_name=by_name)
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if origin.record.tools and "tools" not in given:
        names = ", ".join(map(repr, origin.record.tools))
        raise SnapshotError(
            "the snapshot's sandbox had tools, functions of yours that are not in it: give them by tools={...}, or "
            f"tools={{}} to go on without: {names}"
        )
    settings: dict[str, Any] = {**origin.options(), "store": store or origin.objects.backend, **given}
    if "env" in given:
        settings["env"] = {**origin.options().get("env", {}), **check_environment(given["env"])}
    if checkpoint is not None:
        settings["name"] = snapshot
        if "checkpoint" not in options:
            settings["checkpoint"] = origin.record.checkpoint
    kept = tier_of(origin.record)
    tier, image = settings.pop("tier", kept), settings.pop("image", None)
    if tier != kept:  # another tier's interpreters can't read them
        origin = structs.replace(origin, record=structs.replace(origin.record, variables=[]))
    state = State(origin)
    state.checkpoints = frozenset({checkpoint})
    if tier == "native":
        from belljar.api.native_state import start_from

        start = start_from(origin, settings.get("user", "root"), image)
        if tier != kept:
            settings["env"] = {**environment_of(start.source.record), **settings.get("env", {})}
        checked = Settings.check(settings)  # type: ignore[arg-type]
        states.check_mounts(origin, checked)
        return structs.replace(checked, native=start, image=start.image), state
    if tier == "microvm":
        from belljar.api.machine_state import settings_from

        return settings_from(origin, settings, image), state
    return Settings.check({**settings, "tier": tier, "image": image or BASE}), state  # type: ignore[typeddict-item]
