"""Compiled code: Python functions of (input, environment), and the scopes it makes them in.

A filter's `Code` has a kind. `ONE` returns its single output, `OPT` its output or `EMPTY`, `MANY` an iterable
of outputs. Most filters are ONE, and for those no generator is ever made.

An environment is a chain `(binding, outer)`. The compiler knows how far up each binding is. Chains are
never changed, so a suspended generator can rely on its own.
"""

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from belljar.abi.dataclass import dataclass, field
from belljar.bin.jq.nodes import Function

ONE, OPT, MANY = 0, 1, 2

Value = Any
Env = Any
Run = Callable[[Value, Env], Any]
Path = Any
"""None at the root, else (outer path, key). INVALID once a value no longer belongs to the input."""
PathRun = Callable[[Path, Value, Env], Iterable[tuple[Path, Value]]]


class _Empty:
    def __repr__(self) -> str:
        return "EMPTY"


EMPTY: Any = _Empty()
INVALID: Any = ("invalid path",)


@dataclass(frozen=True, slots=True)
class Code:
    kind: int
    run: Run


class Tail:
    """A function's call of itself as its last act: made by the body, carried out by the caller's loop."""

    __slots__ = ("env", "value")

    def __init__(self, value: Value, env: Env) -> None:
        self.value = value
        self.env = env


class CompileProblem(Exception):
    """The program refers to something that does not exist."""

    def __init__(self, message: str, at: int = 0, length: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.at = at
        self.length = length


class Runtime(Protocol):
    """A running program's interface to its process."""

    def charge(self, steps: int) -> None:
        """Pay for work about to be done."""

    def charge_size(self, size: int) -> None:
        """Refuse a value of this many bytes before it is built."""

    def next_input(self) -> Value:
        """The next input; StopIteration when there is none."""

    def environment(self) -> dict[str, str]: ...

    def now(self) -> float: ...

    def debug(self, value: Value) -> None: ...

    def stderr(self, value: Value) -> None: ...

    def input_filename(self) -> str | None: ...

    def input_line_number(self) -> int: ...

    def zone(self) -> str: ...


class Argument:
    """A filter given to a function: its code, and its path code if that is ever asked for."""

    __slots__ = ("_make_path", "_path", "code")

    def __init__(self, code: Code, make_path: Callable[[], PathRun]) -> None:
        self.code = code
        self._make_path = make_path
        self._path: PathRun | None = None

    @property
    def path(self) -> PathRun:
        if self._path is None:
            self._path = self._make_path()
        return self._path


@dataclass(slots=True)
class Target:
    """A function's body compiled for filters of certain kinds."""

    kind: int
    run: Run
    pending: bool = True
    recursive: bool = False
    tail: bool = False


@dataclass(slots=True)
class PathTarget:
    run: PathRun


@dataclass(slots=True, eq=False)
class Scope:
    """One entry of what names mean, linked to the entries outside it; `depth` counts bindings."""

    outer: "Scope | None"
    sort: str
    """root, variable, filter, label, function, or constant."""
    name: str
    depth: int
    function: Function | None = None
    kind: int = MANY
    """For a filter: the kind of code it is known to hold."""
    constant: Value = None
    targets: dict[tuple[int, ...], Target] = field(default_factory=dict)
    path_targets: dict[tuple[int, ...], PathTarget] = field(default_factory=dict)
    home: "Scope | None" = None
    """For an import: the entry of its function."""

    def bind(self, sort: str, name: str, kind: int = MANY) -> "Scope":
        return Scope(self, sort, name, self.depth + 1, kind=kind)

    def define(self, function: Function) -> "Scope":
        return Scope(self, "function", function.name, self.depth, function)

    def with_constant(self, name: str, value: Value) -> "Scope":
        return Scope(self, "constant", name, self.depth, constant=value)

    def origin(self) -> "Scope":
        """The entry where the function was really defined: an import gives it another name elsewhere."""
        return self if self.home is None else self.home.origin()

    def variable(self, name: str) -> "Scope | None":
        entry: Scope | None = self
        while entry is not None:
            if entry.name == name and entry.sort in ("variable", "constant"):
                return entry
            entry = entry.outer
        return None

    def label(self, name: str) -> "Scope | None":
        entry: Scope | None = self
        while entry is not None:
            if entry.sort == "label" and entry.name == name:
                return entry
            entry = entry.outer
        return None

    def callee(self, name: str, arity: int) -> "Scope | None":
        entry: Scope | None = self
        while entry is not None:
            if entry.name == name:
                if entry.sort == "function":
                    assert entry.function is not None
                    if len(entry.function.parameters) == arity:
                        return entry.origin()
                elif arity == 0 and entry.sort == "filter":
                    return entry
            entry = entry.outer
        return None


def root_scope() -> Scope:
    return Scope(None, "root", "", 0)


def as_many(code: Code) -> Callable[[Value, Env], Iterable[Value]]:
    run = code.run
    if code.kind == MANY:
        return run
    if code.kind == ONE:
        return lambda v, e: (run(v, e),)

    def many(v: Value, e: Env) -> tuple[Value, ...]:
        output = run(v, e)
        return () if output is EMPTY else (output,)

    return many


def coerce(code: Code, kind: int) -> Code:
    """The same filter as code of a wider kind."""
    if code.kind == kind or (code.kind == ONE and kind == OPT):
        return Code(kind, code.run)
    return Code(MANY, as_many(code))


def ancestor(env: Env, up: int) -> Env:
    while up:
        env = env[1]
        up -= 1
    return env


def getter(up: int) -> Run:
    """Reads the binding `up` steps out."""
    if up == 0:
        return lambda v, e: e[0]
    if up == 1:
        return lambda v, e: e[1][0]
    if up == 2:
        return lambda v, e: e[1][1][0]

    def far(v: Value, e: Env) -> Value:
        for _ in range(up):
            e = e[1]
        return e[0]

    return far
