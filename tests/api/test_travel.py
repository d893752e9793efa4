"""Errors and results travel between processes; what stands for a live process does not."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

import belljar
from belljar import (
    AsyncSandbox,
    EngineUnavailable,
    ExecError,
    ExecResult,
    FileError,
    IsolationUnavailable,
    PrefixError,
    RunError,
    RunResult,
    Sandbox,
    SandboxClosed,
    SandboxError,
)
from belljar.api import operations
from belljar.api.runs import Exports, NotExported

FAILED = ExecResult(b"out", b"err\n", 3, 1.5, limit="steps")
RUN = RunResult(False, Exports({"a": 1}, {"b": "why"}), error=RunError("RUNTIME_ERROR", "ValueError", "no", "stack"))

ERRORS = [
    SandboxError("text"),
    SandboxClosed("closed"),
    FileError(2, "/a/b"),
    ExecError(FAILED),
    IsolationUnavailable({"cgroup"}, ["seccomp"]),
    belljar.NotOnThisTier("fork()", "native", "virtual"),
    EngineUnavailable("none"),
    PrefixError(RUN),
    belljar.RunFailed(RUN),
    NotExported("no x"),
    belljar.PolicyError("bad"),
    belljar.SnapshotError("bad"),
    belljar.ImageError("bad"),
    belljar.StoreError("bad"),
    belljar.ToolError("for the guest"),
    belljar.PortClosed("none"),
    belljar.ServiceError("bad"),
    belljar.ContainerError("bad"),
    belljar.InfrastructureError("gone"),
    belljar.BlockStoreError("in use"),
    belljar.SandboxCreationError("bad"),
    belljar.ConflictError(["a"]),
    belljar.ProtectedFileError([belljar.RefusedFile(".envrc", "environment", "why")]),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("again", [lambda e: pickle.loads(pickle.dumps(e)), copy.copy, copy.deepcopy])  # noqa: S301
def test_errors_travel(error: Exception, again: Callable[[Exception], Exception]) -> None:
    other = again(error)
    assert type(other) is type(error)
    assert (str(other), other.args) == (str(error), error.args)
    assert other.__dict__ == error.__dict__


def test_every_public_error_is_among_them() -> None:
    public = {getattr(belljar, name) for name in belljar.__all__}
    errors = {kind for kind in public if isinstance(kind, type) and issubclass(kind, BaseException)}
    assert errors <= {type(error) for error in ERRORS}


def test_results_travel() -> None:
    again = pickle.loads(pickle.dumps([FAILED, RUN, belljar.Limits(), belljar.RunLimits()]))  # noqa: S301
    assert again == [FAILED, RUN, belljar.Limits(), belljar.RunLimits()]
    assert again[1].exports.unsent == {"b": "why"}


def read_what_is_not_there(_: int) -> str:
    with Sandbox() as sandbox:
        return sandbox.files.read("/none")


def test_a_pool_of_processes_brings_an_error_home() -> None:
    with (
        ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool,
        pytest.raises(FileError, match="/none: No such file") as caught,
    ):
        pool.submit(read_what_is_not_there, 0).result(timeout=60)
    assert (caught.value.errno, caught.value.path) == (2, "/none")


def test_what_is_live_is_not_copied() -> None:
    with Sandbox() as sandbox:
        awaited = AsyncSandbox()
        live: list[object] = [sandbox, sandbox.python, sandbox.js, sandbox.files, sandbox.files.watch()]
        live += [sandbox.spawn("true"), sandbox.pty("true"), awaited, awaited.python, awaited.js, awaited.files]
        for thing in live:
            for act in (copy.copy, copy.deepcopy, pickle.dumps):
                with pytest.raises(TypeError, match="can't be copied or pickled"):
                    act(thing)
        assert sandbox.exec("echo still here").stdout == "still here\n"


def test_large_files_are_transferred_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "PIECE", 1000)
    monkeypatch.setattr(operations, "READ_MAX", 2500)
    data = bytes(range(250)) * 40
    with Sandbox() as sandbox:
        sandbox.files.write("big", data)
        with pytest.raises(FileError, match="too large"):
            sandbox.files.read_bytes("big")
        sandbox.files.download("big", tmp_path / "big")
        assert (tmp_path / "big").read_bytes() == data
        sandbox.files.upload(tmp_path / "big", "again")
        assert sandbox.exec("cmp big again && stat -c %s again").stdout == "10000\n"
        for size in (0, 1000, 2000):
            (tmp_path / "small").write_bytes(data[:size])
            sandbox.files.upload(tmp_path / "small", "small")
            sandbox.files.download("small", tmp_path / "back")
            assert (tmp_path / "back").read_bytes() == data[:size]
        with pytest.raises(FileError, match="too large"):
            sandbox.files.download("/dev/zero", tmp_path / "endless")


@pytest.mark.battery
def test_more_than_a_gibibyte_is_downloaded(tmp_path: Path) -> None:
    with Sandbox() as sandbox:
        sandbox.exec("truncate -s 1100M sparse; echo end >> sparse").check()
        sandbox.files.download("sparse", tmp_path / "sparse")
    path = tmp_path / "sparse"
    assert path.stat().st_size == (1100 << 20) + 4
    with path.open("rb") as file:
        file.seek(-4, 2)
        assert file.read() == b"end\n"


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*", ["a", "d"]),
        (".*", [".b"]),
        ("**", ["a", "d", "d/c"]),
        ("d/*", ["d/c"]),
        ("d/.*", ["d/.e"]),
        ("{.,}*", [".b", "a", "d"]),
    ],
)
def test_glob_follows_bash_about_dotfiles(pattern: str, found: list[str]) -> None:
    with Sandbox(files={name: "" for name in ("a", ".b", "d/c", "d/.e")}, cwd="/workspace") as sandbox:
        bash = sandbox.exec(f"shopt -s globstar nullglob; printf '%s\\n' {pattern}").stdout.split()
        if "{" not in pattern:
            assert sandbox.files.glob(pattern) == found
        assert bash == found
