"""Builtins that take paths to paths, for use on the left of assignments."""

from collections.abc import Iterator
from typing import Any

from belljar.bin.jq.builtins.registry import Arguments, path_form, truthy
from belljar.bin.jq.builtins.selecting import take
from belljar.bin.jq.code import Env, Path, PathRun, Scope
from belljar.bin.jq.nodes import RecurseDefault
from belljar.bin.jq.paths import PathCompiler
from belljar.bin.jq.values import Value


@path_form("empty", 0)
def path_empty(compiler: PathCompiler, scope: Scope, arguments: Arguments) -> PathRun:
    return lambda p, v, e: ()


@path_form("getpath", 1)
def path_getpath(compiler: PathCompiler, scope: Scope, arguments: Arguments) -> PathRun:
    return compiler.getpath(arguments[0], scope)


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
