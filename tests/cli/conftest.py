"""The command line in a home of its own: what it leaves behind is not the tester's, and nothing runs on."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from belljar.owner.launch_host import archive_path
from belljar.owner.supervisor_host import shared

Belljar = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(autouse=True)
def workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that is run in this process has workers of its own; later sandboxes must not get them."""
    monkeypatch.setattr(shared, "source", None)


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment with its own caches, the archive of modules in them."""
    cache = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache))
        archive = archive_path()
    subprocess.run([sys.executable, "-I", "-m", "belljar.zygote.recorder_host", archive], check=True, timeout=120)
    return {**os.environ, "XDG_CACHE_HOME": str(cache), "XDG_DATA_HOME": str(cache / "data"), "BELLJAR_NO_DAEMON": "1"}


@pytest.fixture
def belljar(home: dict[str, str], tmp_path: Path) -> Belljar:
    def run(*args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "belljar.cli", *args],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
            env=home,
            cwd=tmp_path,
        )

    return run


@pytest.fixture(autouse=True)
def no_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What this process runs shares nothing with other runs on the machine."""
    monkeypatch.setenv("BELLJAR_NO_DAEMON", "1")
