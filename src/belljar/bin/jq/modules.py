"""Finds and loads jq modules: `import`, `include`, data files and `modulemeta`."""

from typing import Any

from belljar.abi.errors import SysError
from belljar.bin.jq.code import Scope
from belljar.bin.jq.compile import Compiler
from belljar.bin.jq.errors import JqError
from belljar.bin.jq.exact import ParseError
from belljar.bin.jq.nodes import Function, Import, Program
from belljar.bin.jq.options import load_all
from belljar.bin.jq.parse import parse
from belljar.bin.jq.values import Value
from belljar.kernel.process import Process

DEFAULT_SEARCH = ["~/.jq", "$ORIGIN/../lib/jq", "$ORIGIN/../lib"]
ORIGIN = "/usr/bin"


class ModuleProblem(Exception):
    """A module can't be found or used."""


class Modules:
    def __init__(self, process: Process, search: list[str]) -> None:
        self.process = process
        self.search = search
        self._programs: dict[str, Program] = {}
        self._loading: list[str] = []

    def scope(self, program: Program, origin: str, base: Scope) -> Scope:
        """The scope a program's body is compiled in: what it imports, then what it defines."""
        scope = base
        for item in program.imports:
            scope = self.add(item, origin, scope, base)
        for function in program.functions:
            scope = scope.define(function)
        return scope

    def add(self, item: Import, origin: str, scope: Scope, base: Scope) -> Scope:
        path = self.resolve(item, origin)
        if path is None:
            return scope
        if item.data:
            value = self.data(path)
            assert item.name is not None
            return scope.with_constant(item.name, value).with_constant(f"{item.name}::{item.name}", value)
        if path in self._loading:
            raise ModuleProblem(f"jq: error: circular import of {path}\n")
        program = self.program(path)
        self._loading.append(path)
        try:
            # A module sees its own imports and definitions, not those of the program that wants it.
            inner = self.scope(program, path.rpartition("/")[0] or "/", base)
        finally:
            self._loading.pop()
        exported: dict[tuple[str, int], Scope] = {}
        entry: Scope | None = inner
        while entry is not None and entry is not base:
            if entry.sort == "function":
                assert entry.function is not None
                key = (entry.name, len(entry.function.parameters))
                if "::" not in entry.name:
                    exported.setdefault(key, entry)
            entry = entry.outer
        for name, _ in reversed(exported):
            target = exported[name, _]
            scope = alias(scope, f"{item.name}::{name}" if item.name is not None else name, target)
        return scope

    def program(self, path: str) -> Program:
        if path not in self._programs:
            try:
                text = self.process.read_file(path).decode("utf-8", "replace")
            except SysError as error:
                raise ModuleProblem(f"jq: error: module not found: {path} ({error.reason})\n") from None
            program = parse(text, path)
            if program.body is not None:
                raise ModuleProblem("jq: error: library should only have function definitions, not a main expression\n")
            self._programs[path] = program
        return self._programs[path]

    def data(self, path: str) -> list[Value]:
        try:
            return load_all(self.process.read_file(path))
        except SysError as error:
            raise ModuleProblem(f"jq: error loading data file {path}: {error.reason}\n") from None
        except ParseError as error:
            raise ModuleProblem(f"jq: error loading data file {path}: {error}\n") from None

    def resolve(self, item: Import, origin: str) -> str | None:
        """The file an import means, None if it is optional and absent."""
        self.check(item.path)
        wanted = item.metadata.get("search")
        places = [wanted] if isinstance(wanted, str) else wanted if isinstance(wanted, list) else self.search
        suffix = ".json" if item.data else ".jq"
        last = item.path.rpartition("/")[2]
        for place in places:
            directory = self.expand(str(place), origin if wanted is not None else self.process.fs.getcwd())
            for candidate in (
                f"{directory}/{item.path}{suffix}",
                f"{directory}/{item.path}/jq/main{suffix}",
                f"{directory}/{item.path}/{last}{suffix}",
            ):
                if self.process.fs.is_file(candidate):
                    return candidate
        if item.metadata.get("optional") is True:
            return None
        raise ModuleProblem(f"jq: error: module not found: {item.path}\n")

    def check(self, path: str) -> None:
        parts = path.split("/")
        if "\\" in path:
            raise ModuleProblem(f"jq: error: Modules must be named by relative paths using '/', not '\\' ({path})\n")
        if ".." in parts:
            raise ModuleProblem(
                f"jq: error: Relative paths to modules may not traverse to parent directories ({path})\n"
            )

    def expand(self, place: str, origin: str) -> str:
        if place == "~" or place.startswith("~/"):
            place = self.process.env.get("HOME", "/") + place[1:]
        place = place.replace("$ORIGIN", ORIGIN)
        return place.rstrip("/") or "/" if place.startswith("/") else f"{origin.rstrip('/')}/{place.rstrip('/')}"

    def describe(self, name: str, compiler: Compiler) -> Value:
        """`modulemeta`."""
        try:
            path = self.resolve(Import(name, name, False, {}), self.process.fs.getcwd())
            assert path is not None
            program = self.program(path)
        except ModuleProblem as problem:
            raise JqError(str(problem).removeprefix("jq: error: ").rstrip("\n")) from None
        return metadata(program)


def metadata(program: Program) -> Value:
    deps = []
    for item in program.imports:
        entry: dict[str, Any] = dict(item.metadata)
        if item.name is not None:
            entry["as"] = item.name
        entry["is_data"] = item.data
        entry["relpath"] = item.path
        deps.append(entry)
    defined = [f"{function.name}/{len(function.parameters)}" for function in program.functions]
    return {**(program.metadata or {}), "deps": deps, "defs": defined}


def alias(scope: Scope, name: str, target: Scope) -> Scope:
    """`target`'s function under another name, with the scope it was defined in."""
    assert target.function is not None
    renamed = Function(name, target.function.parameters, target.function.body)
    return Scope(scope, "function", name, scope.depth, renamed, home=target)
