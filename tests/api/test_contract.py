"""The public names, as documented: what is called what, takes what, and that the two fronts agree."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import belljar
from belljar import AsyncSandbox, Sandbox
from belljar.api import names
from belljar.api.async_interpreter import AsyncInterpreter
from belljar.api.async_process import AsyncProcess, AsyncStdin, AsyncStream, AsyncTerminal
from belljar.api.files import AsyncFiles, Files
from belljar.api.interpreter import Interpreter
from belljar.api.prefix import AsyncPrefix, Prefix
from belljar.api.process import Process, Stdin, Stream, Terminal
from belljar.api.watch import AsyncWatch, Watch

TWINS = [
    (Sandbox, AsyncSandbox),
    (Files, AsyncFiles),
    (Process, AsyncProcess),
    (Stream, AsyncStream),
    (Stdin, AsyncStdin),
    (Terminal, AsyncTerminal),
    (Interpreter, AsyncInterpreter),
    (Prefix, AsyncPrefix),
    (Watch, AsyncWatch),
]


def public(kind: type) -> dict[str, Any]:
    return {name: member for name, member in vars(kind).items() if not name.startswith("_")}


def arguments(function: Any) -> list[tuple[str, Any, Any]]:
    inner = function.__func__ if isinstance(function, classmethod) else function
    return [(p.name, p.kind, p.default) for p in inspect.signature(inner).parameters.values()]


def test_every_public_name_is_had_from_the_package() -> None:
    remote = {"RemoteSandbox", "AsyncRemoteSandbox"}  # above `api`, whose names `names` has
    assert set(belljar.__all__) - {"__version__"} - remote == set(names.__all__)
    for name in belljar.__all__:
        assert getattr(belljar, name) is not None
    assert set(belljar.__all__) <= set(dir(belljar))


def test_every_documented_error_is_a_sandbox_error() -> None:
    documented = "SandboxClosed SandboxCreationError IsolationUnavailable EngineUnavailable FileError ExecError"
    for name in f"{documented} SnapshotError PolicyError".split():
        assert issubclass(getattr(belljar, name), belljar.SandboxError)


@pytest.mark.parametrize(("plain", "awaited"), TWINS, ids=lambda kind: kind.__name__)
def test_twins_have_the_same_methods_with_the_same_arguments(plain: type, awaited: type) -> None:
    ours = public(plain) | ({"python": 0, "js": 0, "info": 0} if plain is Sandbox else {})
    theirs = public(awaited) | ({"python": 0, "js": 0, "info": 0} if plain is Sandbox else {})
    assert set(ours) <= set(theirs)
    for name in ours:
        if callable(ours[name]) or isinstance(ours[name], classmethod):
            assert arguments(ours[name]) == arguments(theirs[name]), f"{plain.__name__}.{name}"


def test_documented_signatures() -> None:
    for kind in (Sandbox, AsyncSandbox):
        assert list(inspect.signature(kind.exec).parameters) == (
            "self cmd cwd env stdin timeout limits on_stdout on_stderr merge_stderr check input background".split()
        )
        assert (
            list(inspect.signature(kind.spawn).parameters)
            == "self cmd cwd env stdin timeout limits merge_stderr text".split()
        )
        pty = inspect.signature(kind.pty).parameters
        assert (list(pty), pty["rows"].default, pty["cols"].default) == ("self cmd cwd env rows cols".split(), 24, 80)
        assert inspect.signature(kind.fork).parameters["count"].default == 1
