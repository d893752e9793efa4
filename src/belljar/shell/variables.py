"""The variables of one shell: scalars, arrays, attributes, namerefs and dynamic scope, cheap to read and to fork.

Binding is shallow: `table` maps each name to what is visible now, and a function's frame keeps what its locals hide,
so reading costs one dict lookup at any depth. A plain variable is stored as its bare `str` (or `int`, when arithmetic
made it); anything with attributes, arrays, special variables and those with side effects are a `Var`.

Forking copies the dict, not the values: `Var`s are shared until one side changes one (see `Epoch`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, ClassVar

from belljar.shell.arrays import Array, Assoc
from belljar.shell.bindings import (
    ARRAY,
    ASSOC,
    CAPITAL,
    CASE,
    EXPORT,
    INTEGER,
    LETTERS,
    LOWER,
    NAMEREF,
    NAMEREF_DEPTH,
    READONLY,
    TRACE,
    UPPER,
    Contents,
    DynamicVar,
    Entry,
    Epoch,
    Frame,
    Var,
    is_name,
)
from belljar.shell.control import ArithError, BadElementError, ReadonlyError, ShellError, SubscriptError

if TYPE_CHECKING:
    from belljar.shell.shell import Shell

__all__ = [
    "ARRAY",
    "ASSOC",
    "CAPITAL",
    "CASE",
    "EXPORT",
    "INTEGER",
    "LETTERS",
    "LOWER",
    "NAMEREF",
    "NAMEREF_DEPTH",
    "READONLY",
    "TRACE",
    "UPPER",
    "Contents",
    "DynamicVar",
    "Entry",
    "Epoch",
    "Frame",
    "GlobalScope",
    "Var",
    "Variables",
    "is_name",
]


class Variables:
    """All variables of one shell process."""

    __slots__ = ("_env", "_shared_frames", "epoch", "frames", "shell", "table")

    HOOKS: ClassVar[dict[str, Callable[[Shell], None]]] = {}
    """Called after a variable of that name changed in any way. Filled by `special`; such variables are `Var`s."""
    PARTS: ClassVar[dict[str, Callable[[Shell, str, str], None]]] = {}
    """Assigns an element (by its key or index) of a special array. Filled by `special`."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self.table: dict[str, Entry] = {}
        self.frames: list[Frame] = []
        """Innermost last; `source` frames too, though they hold no locals."""
        self.epoch = Epoch()
        self._env: dict[str, str] | None = None
        self._shared_frames = 0

    def fork(self, shell: Shell) -> Variables:
        if self._env is None:
            self.exported()  # so that the forks to come need not work it out each
        child = Variables.__new__(Variables)
        child.shell = shell
        child.table = self.table.copy()
        child.frames = self.frames.copy()
        child._shared_frames = len(self.frames)
        child._env = self._env
        child.epoch = Epoch(self.epoch)
        return child

    # Reading.

    def get(self, name: str) -> str | None:
        """The value of `$name` (element 0 of an array), namerefs followed; None if unset."""
        entry = self.table.get(name)
        if type(entry) is str:
            return entry
        if entry is None:
            return None
        if type(entry) is int:
            return str(entry)
        assert isinstance(entry, Var)
        if entry.attrs & NAMEREF:
            target, subscript = self.resolve(name)
            if subscript in ("@", "*"):
                contents = self.contents(target)
                if isinstance(contents, Array | Assoc):
                    return self.shell.join(contents.values(), " " if subscript == "@" else None)
                return contents
            if subscript is not None:
                return self.get_element(target, self.shell.subscript_text(target, subscript))
            if target == name:
                return None
            return self.get(target)
        return entry.read(self.shell)

    def contents(self, name: str) -> Contents:
        """The whole value, namerefs followed: a str, an Array, an Assoc; None if unset. Not to be changed in place."""
        entry = self.entry(name)
        if isinstance(entry, Var):
            return entry.contents(self.shell)
        return str(entry) if type(entry) is int else entry  # type: ignore[return-value]

    def entry(self, name: str) -> Entry | None:
        """The binding of a name after following namerefs (a nameref to an element gives the array)."""
        entry = self.table.get(name)
        if isinstance(entry, Var) and entry.attrs & NAMEREF:
            target, _ = self.resolve(name)
            return self.table.get(target) if target != name else None
        return entry

    def attrs(self, name: str) -> int:
        """The attribute bits (of the target, for a nameref); 0 for a plain or unset variable."""
        entry = self.entry(name)
        return entry.attrs if isinstance(entry, Var) else 0

    def own_attrs(self, name: str) -> int:
        """The attribute bits of the variable itself, NAMEREF included."""
        entry = self.table.get(name)
        return entry.attrs if isinstance(entry, Var) else 0

    def declared(self, name: str) -> bool:
        """Whether `declare -p name` finds it: it may still be unset. Namerefs aren't followed."""
        return name in self.table

    def names(self, prefix: str = "") -> list[str]:
        """The names of set variables that begin so, sorted (`${!prefix*}`)."""
        found = [name for name in self.table if name.startswith(prefix) and self._is_visible(name)]
        found.sort()
        return found

    def _is_visible(self, name: str) -> bool:
        entry = self.table[name]
        return not isinstance(entry, Var) or entry.contents(self.shell) is not None

    def resolve(self, name: str) -> tuple[str, str | None]:
        """Follow namerefs: the final name, and the subscript if the last one names an element."""
        start = name
        for _ in range(NAMEREF_DEPTH):
            entry = self.table.get(name)
            if not isinstance(entry, Var) or not entry.attrs & NAMEREF or not isinstance(entry.value, str):
                return name, None
            target = entry.value
            if target.endswith("]") and "[" in target:
                base, _, rest = target.partition("[")
                return self.resolve(base)[0], rest[:-1]
            if not target:
                return name, None
            name = target
        self.shell.warn(f"warning: {start}: circular name reference")
        return start, None

    def get_element(self, name: str, subscript: str) -> str | None:
        """One element by its subscript's text: a key if the array is associative, else arithmetic. SubscriptError."""
        contents = self.contents(name)
        if isinstance(contents, Assoc):
            return contents.get(subscript)
        index = self.index_of(subscript)
        if isinstance(contents, Array):
            return contents.get(self.check_index(name, contents, index))
        return contents if index in (0, -1) else None

    def check_index(self, name: str, array: Array, index: int) -> int:
        """A negative index counts from the end; before the start it is an error."""
        if index < 0:
            index += array.last + 1
            if index < 0:
                raise ShellError(f"{name}: bad array subscript")
        return index

    # Writing.

    def set(self, name: str, value: str) -> None:
        """`name=value` with all it means: nameref, readonly, integer and case attributes, element 0 of an array.

        ReadonlyError, ArithError.
        """
        entry = self.table.get(name)
        kind = type(entry)
        if kind is str or kind is int:
            self.table[name] = value
            return
        if entry is None:
            self._create(name, value)
            return
        assert isinstance(entry, Var)
        if entry.attrs & NAMEREF:
            target, subscript = self._resolve_for_write(name, value)
            if target is None:
                return
            if subscript in ("@", "*"):
                raise ShellError(f"{target}[{subscript}]: bad array subscript")
            if subscript is not None:
                self.set_element(target, self.shell.subscript_text(target, subscript), value)
                return
            if target != name:
                self.set(target, value)
                return
        if entry.attrs & READONLY:
            raise ReadonlyError(name)
        if isinstance(entry, DynamicVar):
            if entry.writer is not None:
                entry.writer(self.shell, value)
            return
        entry = self.own(name, entry)
        if entry.attrs & (INTEGER | CASE):
            value = self.convert(entry.attrs, value)
        if isinstance(entry.value, Array):
            entry.value.set(0, value)
        elif isinstance(entry.value, Assoc):
            entry.value.set("0", value)
        elif entry.attrs & ARRAY:
            entry.value = Array({0: value})
        elif entry.attrs & ASSOC:
            entry.value = Assoc()
            entry.value.set("0", value)
        else:
            entry.value = value
        if self.shell.allexport:
            entry.attrs |= EXPORT
        self.changed(name)

    def append(self, name: str, value: str) -> None:
        """`name+=value`: adds if the integer attribute is set."""
        target, subscript = self.resolve(name)
        if subscript is not None:
            self.set_element(target, self.shell.subscript_text(target, subscript), value, append=True)
            return
        old = self.get(target) or ""
        if self.attrs(target) & INTEGER:
            self.set(target, str(self.shell.arith(old or "0") + self.shell.arith(value or "0")))
        else:
            self.shell.budget.charge_size(len(old) + len(value))
            self.set(target, old + value)

    def set_element(self, name: str, subscript: str, value: str, *, append: bool = False) -> None:
        """`name[subscript]=value`, the text a key or arithmetic. Makes an indexed array of anything else."""
        target, inner = self.resolve(name)
        if inner is not None:
            raise ShellError(f"`{name}': not a valid identifier")
        entry = self.table.get(target)
        if isinstance(entry, Var) and (entry.attrs & ASSOC):
            self.set_key(target, subscript, value, append=append)
        else:
            self.set_index(target, self.index_of(subscript), value, append=append, subscript=subscript)

    def index_of(self, subscript: str) -> int:
        """The index that the text of a subscript gives. SubscriptError."""
        try:
            return self.shell.arith(subscript)
        except ArithError as error:
            raise SubscriptError(str(error)) from None

    def set_index(self, name: str, index: int, value: str, *, append: bool = False, subscript: str = "") -> None:
        """Assign one element of an indexed array; `name` is no nameref."""
        entry = self.table.get(name)
        if isinstance(entry, Var) and entry.attrs & READONLY:
            raise ReadonlyError(name)
        if isinstance(entry, DynamicVar):
            self._set_part(name, str(index), value)
            return
        var = self.own_array(name)
        array = var.value
        assert isinstance(array, Array)
        if index < 0:
            if index + array.last + 1 < 0:
                raise BadElementError(f"{name}[{subscript or index}]: bad array subscript")
            index += array.last + 1
        if append:
            old = array.get(index) or ""
            if var.attrs & INTEGER:
                value = str(self.shell.arith(old or "0") + self.shell.arith(value or "0"))
            else:
                value = old + value
        if var.attrs & (INTEGER | CASE):
            value = self.convert(var.attrs, value)
        array.set(index, value)
        if name in self.HOOKS or var.attrs & EXPORT:
            self.changed(name)

    def set_key(self, name: str, key: str, value: str, *, append: bool = False) -> None:
        """Assign one element of an associative array that exists; `name` is no nameref."""
        entry = self.table.get(name)
        assert isinstance(entry, Var)
        if entry.attrs & READONLY:
            raise ReadonlyError(name)
        if isinstance(entry, DynamicVar):
            self._set_part(name, key, value)
            return
        var = self.own(name, entry)
        if not isinstance(var.value, Assoc):
            var.value = Assoc()
        if append:
            old = var.value.get(key) or ""
            if var.attrs & INTEGER:
                value = str(self.shell.arith(old or "0") + self.shell.arith(value or "0"))
            else:
                value = old + value
        if var.attrs & (INTEGER | CASE):
            value = self.convert(var.attrs, value)
        var.value.set(key, value)
        if name in self.HOOKS:
            self.changed(name)

    def _set_part(self, name: str, key: str, value: str) -> None:
        """Assign an element of a special variable; most ignore it."""
        writer = self.PARTS.get(name)
        if writer is not None:
            writer(self.shell, key, value)

    def set_array(self, name: str, values: Iterable[str]) -> None:
        """Replace (or make) an indexed array (mapfile, read -a). ReadonlyError; an associative array is an error."""
        target, _ = self.resolve(name)
        if self.attrs(target) & ASSOC:
            raise ShellError(f"{target}: cannot convert associative to indexed array")
        var = self.own_array(target)
        if var.attrs & READONLY:
            raise ReadonlyError(target)
        if var.attrs & (INTEGER | CASE):
            values = [self.convert(var.attrs, value) for value in values]
        var.value = Array.of(values)
        self.changed(target)

    def convert(self, attrs: int, value: str) -> str:
        """Convert an assigned value as the attributes (-i, -l, -u, -c) demand."""
        if attrs & INTEGER:
            return str(self.shell.arith(value)) if value.strip() else "0"
        if attrs & LOWER:
            return value.lower()
        if attrs & UPPER:
            return value.upper()
        if attrs & CAPITAL:
            return value[:1].upper() + value[1:].lower()
        return value

    def own(self, name: str, entry: Var) -> Var:
        """The variable, safe to change in place: a copy if a fork may still see it."""
        epoch = self.epoch
        if entry.epoch is epoch and epoch.sharers == 0:
            return entry
        if epoch.sharers:
            epoch = self.epoch = self._new_epoch()
        fresh = entry.copy(epoch)
        self.table[name] = fresh
        return fresh

    def _new_epoch(self) -> Epoch:
        """Begin a new epoch: live forks keep sharing the variables of the old one."""
        fresh = Epoch(self.epoch)
        self.epoch.alive = False
        return fresh

    def own_var(self, name: str) -> Var:
        """The variable as a `Var` of our own, made (unset) if it doesn't exist. Namerefs aren't followed."""
        entry = self.table.get(name)
        if isinstance(entry, Var):
            return self.own(name, entry)
        var = Var(str(entry) if entry is not None else None, 0, self.epoch)
        if self.epoch.sharers:
            var.epoch = self.epoch = self._new_epoch()
        self.table[name] = var
        return var

    def own_array(self, name: str) -> Var:
        """The variable as an indexed array of our own: a scalar becomes element 0."""
        var = self.own_var(name)
        if not isinstance(var.value, Array):
            if isinstance(var.value, Assoc):
                raise ShellError(f"{name}: cannot convert associative to indexed array")
            var.value = Array({0: var.value} if var.value is not None else {})
            var.attrs |= ARRAY
            if self.shell.allexport:
                var.attrs |= EXPORT
        return var

    def own_assoc(self, name: str) -> Var:
        """The variable as an associative array of our own. An indexed array can't become one."""
        var = self.own_var(name)
        if not isinstance(var.value, Assoc):
            if isinstance(var.value, Array) or var.attrs & ARRAY:
                raise ShellError(f"{name}: cannot convert indexed to associative array")
            scalar = var.value
            var.value = Assoc()
            if scalar is not None:
                var.value.set("0", scalar)
            var.attrs |= ASSOC
        return var

    def _create(self, name: str, value: str) -> None:
        if self.shell.allexport:
            self.table[name] = Var(value, EXPORT, None)
        elif name in self.HOOKS:
            self.table[name] = Var(value, 0, None)
        else:
            self.table[name] = value
            return
        self.changed(name)

    def _resolve_for_write(self, name: str, value: str) -> tuple[str | None, str | None]:
        """The target of an assignment through a nameref; an unbound nameref takes the value as its target."""
        entry = self.table[name]
        assert isinstance(entry, Var)
        if not entry.value:
            if entry.attrs & READONLY:
                raise ReadonlyError(name)
            self.check_nameref_target(name, value)
            self.own(name, entry).value = value
            return None, None
        return self.resolve(name)

    def check_nameref_target(self, name: str, target: str) -> None:
        """Raises ShellError if the text can't be a nameref's target."""
        base = target.partition("[")[0] if target.endswith("]") else target
        if not is_name(base):
            raise ShellError(f"`{target}': not a valid identifier")

    def changed(self, name: str) -> None:
        """A variable changed in a way that is more than a plain string: forget the environment, run its hook."""
        self._env = None
        hook = self.HOOKS.get(name)
        if hook is not None:
            hook(self.shell)

    def set_attrs(self, name: str, on: int = 0, off: int = 0) -> None:
        """Set and clear attribute bits (`declare -x +i`); the variable is made (unset) if it doesn't exist.

        Not namerefs' targets: the variable itself. ReadonlyError when clearing READONLY. ARRAY and ASSOC convert.
        """
        if off & READONLY and self.own_attrs(name) & READONLY:
            raise ReadonlyError(name)
        if on & ASSOC:
            var = self.own_var(name)
            if var.value is not None or var.attrs & ARRAY:
                self.own_assoc(name)
            var.attrs |= ASSOC
        elif on & ARRAY:
            var = self.own_var(name)
            if var.attrs & ASSOC:
                raise ShellError(f"{name}: cannot convert associative to indexed array")
            if var.value is not None:
                self.own_array(name)
            var.attrs |= ARRAY
        else:
            var = self.own_var(name)
        if on & CASE:
            var.attrs &= ~CASE
        var.attrs = (var.attrs | on) & ~off
        self.changed(name)

    def unset(self, name: str) -> bool:
        """Remove a variable (not a nameref's target); False if there was none. ReadonlyError.

        A local of the running function stays local but unset; of one of a caller, the hidden binding is restored.
        """
        entry = self.table.get(name)
        if entry is None:
            return False
        if isinstance(entry, Var) and entry.attrs & READONLY:
            raise ReadonlyError(name)
        top = True
        for place in range(len(self.frames) - 1, -1, -1):
            frame = self.frames[place]
            if name in frame.saved:
                if (top or self.shell.shopts["localvar_unset"]) and name not in frame.temporary:
                    self.table[name] = Var(None, 0, None)
                else:
                    self._restore(name, self.own_frame(place).saved.pop(name))
                self.changed(name)
                return True
            top = top and not frame.function
        del self.table[name]
        self.changed(name)
        return True

    def unset_element(self, name: str, subscript: str) -> bool:
        """`unset name[subscript]`; False if there was none. ReadonlyError, ShellError."""
        target, _ = self.resolve(name)
        entry = self.table.get(target)
        if entry is None:
            return False
        if not subscript:
            return False
        try:
            subscript = self.shell.subscript_text(target, subscript)
        except BadElementError:
            raise ShellError(f"[{subscript}]: bad array subscript") from None
        if not isinstance(entry, Var):
            if self.index_of(subscript) in (0, -1):
                return self.unset(target)
            return False
        if entry.attrs & READONLY:
            raise ReadonlyError(target)
        if isinstance(entry, DynamicVar):
            return False
        var = self.own(target, entry)
        if isinstance(var.value, Assoc):
            return var.value.remove(subscript)
        if isinstance(var.value, Array):
            index = self.index_of(subscript)
            if index < 0:
                index += var.value.last + 1
                if index < 0:
                    raise ShellError(f"[{subscript}]: bad array subscript")
            return var.value.remove(index)
        if self.index_of(subscript) in (0, -1):
            return self.unset(target)
        raise ShellError(f"{name}: not an array variable")

    # Scopes.

    def function_frame(self) -> Frame | None:
        """The innermost function call, or None at the top level."""
        for frame in reversed(self.frames):
            if frame.function:
                return frame
        return None

    def push(self, frame: Frame) -> None:
        self.frames.append(frame)

    def pop(self) -> Frame:
        """End a call: what its locals hid is visible again."""
        frame = self.frames.pop()
        if self._shared_frames > len(self.frames):
            self._shared_frames = len(self.frames)
        if frame.saved:
            table = self.table
            for name, entry in frame.saved.items():
                local = table.get(name)
                if entry is None:
                    table.pop(name, None)
                else:
                    table[name] = entry
                if isinstance(local, Var) or isinstance(entry, Var):
                    self.changed(name)
        return frame

    def _restore(self, name: str, entry: Entry | None) -> None:
        if entry is None:
            self.table.pop(name, None)
        else:
            self.table[name] = entry

    def own_frame(self, place: int) -> Frame:
        """The frame at a place of the stack, safe to change: a copy if it came from before a fork."""
        if place < self._shared_frames:
            for shared in range(self._shared_frames):
                self.frames[shared] = self.frames[shared].copy()
            self._shared_frames = 0
        return self.frames[place]

    def is_local(self, name: str) -> bool:
        """Whether the name is local to the running function."""
        frame = self.function_frame()
        return frame is not None and name in frame.saved and name not in frame.temporary

    def make_local(self, name: str) -> None:
        """`local name`: a new, unset variable for the running function; nothing if it already is one.

        A variable bound by `name=value call` keeps its value. ReadonlyError if a readonly one is visible.
        """
        place = len(self.frames) - 1
        while place >= 0 and not self.frames[place].function:
            place -= 1
        if place < 0:
            return
        frame = self.own_frame(place)
        if name in frame.saved:
            frame.temporary -= {name}
            return
        entry = self.table.get(name)
        if isinstance(entry, Var) and entry.attrs & READONLY:
            raise ReadonlyError(name)
        frame.saved[name] = entry
        if isinstance(entry, Var) and entry.attrs & EXPORT and self._is_temporary(name, place):
            self.table[name] = Var(entry.read(self.shell), EXPORT, None)
        else:
            self.table[name] = Var(None, entry.attrs & EXPORT if isinstance(entry, Var) else 0, None)
            self.changed(name)

    def _is_temporary(self, name: str, place: int) -> bool:
        """Whether the visible binding comes from `name=value call` of an enclosing call."""
        for frame in reversed(self.frames[:place]):
            if name in frame.saved:
                return name in frame.temporary
        return False

    def in_global_scope(self, name: str) -> GlobalScope:
        """`with vars.in_global_scope(name):` makes `name` the global variable meanwhile (`declare -g`)."""
        return GlobalScope(self, name)

    # The environment.

    def exported(self) -> dict[str, str]:
        """The environment of a command run now. Not to be changed."""
        env = self._env
        if env is None:
            found: dict[str, Contents] = {}
            for name, entry in self.table.items():
                if type(entry) is not str and isinstance(entry, Var) and entry.attrs & EXPORT:
                    found[name] = entry.contents(self.shell)
            for frame in reversed(self.frames):  # a local that isn't exported, or unset, does not hide what is
                for name, hidden in frame.saved.items():
                    if isinstance(hidden, Var) and hidden.attrs & EXPORT and found.get(name) is None:
                        found[name] = hidden.contents(self.shell)
            env = self._env = {name: value for name, value in found.items() if isinstance(value, str)}
        return env

    def __iter__(self) -> Iterator[str]:
        """All declared names, unset ones too, in no order."""
        return iter(list(self.table))


class GlobalScope:
    """Makes a hidden global variable visible while the block runs, then hides it again with its new value."""

    def __init__(self, variables: Variables, name: str) -> None:
        self._variables = variables
        self._name = name
        self._place = -1
        self._visible: Entry | None = None

    def __enter__(self) -> None:
        variables, name = self._variables, self._name
        for place, frame in enumerate(variables.frames):
            if name in frame.saved:
                self._place = place
                self._visible = variables.table.get(name)
                variables._restore(name, frame.saved[name])
                return

    def __exit__(self, *_: object) -> None:
        if self._place >= 0:
            variables, name = self._variables, self._name
            variables.own_frame(self._place).saved[name] = variables.table.get(name)
            variables._restore(name, self._visible)
            variables.changed(name)
