"""Builtins that take paths to paths, for use on the left of assignments."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from belljar.bin.jq.code import Env, Path, PathRun, Scope
from belljar.bin.jq.nodes import RecurseDefault
from belljar.bin.jq.paths import PathCompiler
from belljar.bin.jq.values import Value

if TYPE_CHECKING:
    pass


from belljar.bin.jq.builtins.registry import SELF, Arguments, path_form, truthy
from belljar.bin.jq.builtins.selecting import check_limit, check_nth, check_skip, drop, take


@path_form("empty", 0)
def path_empty(compiler: PathCompiler, scope: Scope, arguments: Arguments) -> PathRun:
    return lambda p, v, e: ()


@path_form("getpath", 1)
def path_getpath(compiler: PathCompiler, scope: Scope, arguments: Arguments) -> PathRun:
    return compiler.getpath(arguments[0], scope)


@path_form("nth", 1)
def path_nth(compiler: PathCompiler, scope: Scope, arguments: Arguments) -> PathRun:
    return compiler.keyed(SELF, scope, compiler.compiler.many(arguments[0], scope))


@path_form("recurse", 0, 1, 2)
def path_recurse(compiler: PathCompiler, scope: Scope, arguments: Arguments) -> PathRun:
    if not arguments:
        return compiler.recurse_default(RecurseDefault(), scope)
    step = compiler.path(arguments[0], scope)
    if len(arguments) == 2:
        tests, inner = compiler.compiler.many(arguments[1], scope), step

        def chosen(p: Path, v: Value, e: Env) -> Iterator[tuple[Path, Value]]:
            for where, value in inner(p, v, e):
                for c in tests(value, e):
                    if truthy(c):
                        yield where, value

        step = chosen
    return compiler.recurse(step)


@path_form("first", 1)
def path_first(compiler: PathCompiler, scope: Scope, arguments: Arguments) -> PathRun:
    run = compiler.path(arguments[0], scope)
    return lambda p, v, e: take(run(p, v, e), 1)


@path_form("last", 1)
def path_last(compiler: PathCompiler, scope: Scope, arguments: Arguments) -> PathRun:
    run = compiler.path(arguments[0], scope)

    def final(p: Path, v: Value, e: Env) -> Iterator[tuple[Path, Value]]:
        found: Any = None
        for found in run(p, v, e):  # noqa: B007 (the last one counts)
            pass
        if found is not None:
            yield found

    return final


def path_counted(name: str, check: Callable[[Value], float], part: Callable[..., Iterator[Any]]) -> None:
    @path_form(name, 2)
    def counted_paths(compiler: PathCompiler, scope: Scope, arguments: Arguments) -> PathRun:
        counts, run = compiler.compiler.many(arguments[0], scope), compiler.path(arguments[1], scope)

        def some(p: Path, v: Value, e: Env) -> Iterator[tuple[Path, Value]]:
            for count in counts(v, e):
                yield from part(run(p, v, e), check(count))

        return some


path_counted("limit", check_limit, take)
path_counted("skip", check_skip, drop)
path_counted("nth", check_nth, lambda outputs, count: take(drop(outputs, count), 1))


@path_form("until", 2)
def path_until(compiler: PathCompiler, scope: Scope, arguments: Arguments) -> PathRun:
    tests, steps = compiler.compiler.many(arguments[0], scope), compiler.path(arguments[1], scope)
    charge = compiler.charge

    def run(p: Path, v: Value, e: Env) -> Iterator[tuple[Path, Value]]:
        charge(1)
        for c in tests(v, e):
            if truthy(c):
                yield p, v
            else:
                for where, value in steps(p, v, e):
                    yield from run(where, value, e)

    return run
